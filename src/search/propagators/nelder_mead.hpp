#pragma once

#include "finch/search/propagator.hpp"

#include "fold_plan.hpp"
#include "unit_genome.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace finch::search {

/// Of a coordinate that went through its gene's value.
constexpr double coordinate_rounding = 1e-12;

using NelderMeadPlan = FoldPlan<NelderMeadOptions>;

/// One simplex on the unit cube, of which the worst `parallel` vertices move at once (Lee and Wiswall, "A parallel
/// implementation of the simplex function minimization routine", 2007; with one vertex it is Nelder and Mead's of
/// 1965), with the coefficients of Gao and Han ("Implementing the Nelder–Mead simplex algorithm with adaptive
/// parameters", 2012). It says at which points it needs a loss, in any order.
class Simplex {
public:
    /// A vertex at `centre` and one beside it along each of the genes `free`, `edges` away. `loss`: of the centre,
    /// where it is known.
    Simplex(const UnitGenome& centre, const UnitGenome& edges, const std::vector<std::size_t>& free,
            std::size_t parallel, std::optional<double> loss);

    /// Where a loss is needed now.
    [[nodiscard]] std::vector<UnitGenome> open_points() const;
    /// Gives a loss to those of them that `is_same`, whose place is then `point`. Returns whether there were any.
    bool take(const UnitGenome& point, double loss, const std::function<bool(const UnitGenome&)>& is_same);

    struct Vertex {
        UnitGenome point;
        std::optional<double> loss;
    };
    /// Best first, once all are known.
    [[nodiscard]] const std::vector<Vertex>& vertices() const noexcept { return vertices_; }
    /// It is too small to continue, or has not improved for long.
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
    [[nodiscard]] const Vertex& best() const noexcept { return best_; }

private:
    /// Of one vertex: its reflection, then an expansion or a contraction.
    struct Move {
        std::size_t vertex = 0;
        Vertex reflection;
        Vertex second;  ///< no point: none is needed
        bool is_contraction = false;
    };

    void go_on();
    void begin_moves();
    void choose_second(Move& move);
    void end_moves();
    [[nodiscard]] UnitGenome along(const UnitGenome& centroid, const UnitGenome& from, double coefficient) const;
    [[nodiscard]] double loss_of(std::size_t vertex) const { return *vertices_[vertex].loss; }
    template <class Self, class Visitor>
    static void for_each_open(Self& self, const Visitor& visit);

    std::vector<std::size_t> free_;
    std::size_t parallel_;
    std::vector<Vertex> vertices_;
    std::vector<Move> moves_;  ///< of the worst vertices; none while losses of vertices are missing
    UnitGenome centroid_;
    Vertex best_;
    std::size_t without_gain_ = 0;  ///< results since the best one
    bool has_ended_ = false;
};

/// All that NelderMeadOptions keeps: a fold over an island's results. A simplex is a slot; which of its points an
/// individual is, its genome says.
class NelderMeadState {
public:
    /// Throws ConfigError if a gene is an unordered choice.
    explicit NelderMeadState(NelderMeadPlan plan);

    void take(const Individual& individual, bool born_here);
    /// `in_training`: on the island. A point that some simplex needs and no worker evaluates; if there is none, a new
    /// simplex begins.
    [[nodiscard]] Offspring breed(const Stage& stage, const std::vector<const Individual*>& in_training,
                                  RandomStream& random) const;
    /// Simplices that have results.
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] const Simplex& simplex(std::size_t slot) const { return slots_.at(slot).simplex; }
    [[nodiscard]] std::int32_t starts(std::size_t slot) const { return slots_.at(slot).start + 1; }

private:
    struct Slot {
        Simplex simplex;
        std::int32_t start = 0;  ///< how often it began again
        double best_before = std::numeric_limits<double>::infinity();
    };

    [[nodiscard]] Simplex simplex_around(const UnitGenome& centre, std::optional<double> loss) const;
    [[nodiscard]] Simplex simplex_anywhere(std::size_t slot, std::int32_t start) const;
    void begin_again(std::size_t slot);

    NelderMeadPlan plan_;
    std::vector<std::size_t> free_;
    std::size_t parallel_;
    UnitGenome edges_;
    std::vector<Slot> slots_;
    std::vector<std::size_t> by_best_;               ///< slots, by the best loss of their simplices
    std::optional<Simplex::Vertex> from_elsewhere_;  ///< the best that came to the island and no simplex began at
    double best_loss_ = std::numeric_limits<double>::infinity();
};

}  // namespace finch::search
