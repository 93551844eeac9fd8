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

/// Rounding error of a coordinate that was converted to its gene's value and back.
constexpr double coordinate_rounding = 1e-12;

using NelderMeadPlan = FoldPlan<NelderMeadOptions>;

/// One simplex on the unit cube. The worst `parallel` vertices of a simplex move at the same time (Lee and Wiswall, "A
/// parallel implementation of the simplex function minimization routine", 2007). With one moving vertex, this is the
/// algorithm of Nelder and Mead (1965). The coefficients of moves are taken from Gao and Han ("Implementing the
/// Nelder–Mead simplex algorithm with adaptive parameters", 2012). The simplex lists the points that need a loss; the
/// losses may come in any order.
class Simplex {
public:
    /// Creates a vertex at `centre`, and for each gene in `free` a vertex that is `edges` away from `centre` along this
    /// gene. `loss`: the loss at `centre`, if it is known.
    Simplex(const UnitGenome& centre, const UnitGenome& edges, const std::vector<std::size_t>& free,
            std::size_t parallel, std::optional<double> loss);

    /// Returns the points that need a loss now.
    [[nodiscard]] std::vector<UnitGenome> open_points() const;
    /// Sets the loss of all open points that satisfy `is_same`, and adopts the coordinates of `point` if they only
    /// differ by rounding. Returns whether any open point satisfied `is_same`.
    bool take(const UnitGenome& point, double loss, const std::function<bool(const UnitGenome&)>& is_same);

    struct Vertex {
        UnitGenome point;
        std::optional<double> loss;
    };
    /// Returns the vertices. The best vertex comes first as soon as all losses are known.
    [[nodiscard]] const std::vector<Vertex>& vertices() const noexcept { return vertices_; }
    /// Returns whether the simplex is too small to continue, or has not improved for long.
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
    [[nodiscard]] const Vertex& best() const noexcept { return best_; }

private:
    /// A move of one vertex: its reflection, then an expansion or a contraction.
    struct Move {
        std::size_t vertex = 0;
        Vertex reflection;
        Vertex second;  ///< without a point if it is not needed
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
    std::vector<Move> moves_;  ///< moves of the worst vertices; empty while losses of vertices are missing
    UnitGenome centroid_;
    Vertex best_;
    std::size_t without_gain_ = 0;  ///< number of results since the last improvement
    bool has_ended_ = false;
};

/// The state of the propagator for NelderMeadOptions, computed from an island's results one by one. Each simplex has a
/// slot number. The genome of an individual tells which point of the simplex it evaluates.
class NelderMeadState {
public:
    /// Throws ConfigError if a gene is an unordered choice.
    explicit NelderMeadState(NelderMeadPlan plan);

    void take(const Individual& individual, bool born_here);
    /// Breeds at a point that some simplex needs and no worker evaluates yet. If no simplex needs a point, a new
    /// simplex begins. `in_training`: the individuals in training on the island.
    [[nodiscard]] Offspring breed(const Stage& stage, const std::vector<const Individual*>& in_training,
                                  RandomStream& random) const;
    /// Returns the number of simplices that have results.
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] const Simplex& simplex(std::size_t slot) const { return slots_.at(slot).simplex; }
    [[nodiscard]] std::int32_t starts(std::size_t slot) const { return slots_.at(slot).start + 1; }

private:
    struct Slot {
        Simplex simplex;
        std::int32_t start = 0;  ///< number of restarts
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
    std::vector<std::size_t> by_best_;               ///< slots, sorted by the best loss of their simplices
    std::optional<Simplex::Vertex> from_elsewhere_;  ///< the best other result at which no simplex has begun
    double best_loss_ = std::numeric_limits<double>::infinity();
};

}  // namespace finch::search
