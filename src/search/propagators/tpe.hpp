#pragma once

#include "finch/search/propagator.hpp"

#include "parzen.hpp"

#include <cstddef>
#include <vector>

namespace finch::search {

/// All that TpeOptions keeps: the best and the newest results, folded from an island's results.
class TpeState {
public:
    TpeState(const TpeOptions& options, Space space);

    void take(const Individual& individual, bool born_here);
    /// `in_training`: on the island. It counts among the worse ones (the constant liar of Ginsbourger, Le Riche and
    /// Carraro 2010, with the worst loss).
    [[nodiscard]] Offspring breed(const std::vector<const Individual*>& in_training,
                                  std::span<const Constraint> constraints, RandomStream& random) const;

    /// Genes that are active together; those that decide whether they are stand in earlier groups.
    [[nodiscard]] const std::vector<std::vector<std::size_t>>& groups() const noexcept { return groups_; }
    /// What the two densities of a group are made of.
    struct Split {
        std::vector<const UnitGenome*> below;  ///< the best, best first
        std::vector<const UnitGenome*> above;
    };
    [[nodiscard]] Split split(std::size_t group) const;

private:
    struct Seen {
        Genome genome;
        UnitGenome point;
        std::vector<bool> active;  ///< by group
        Standing standing;
    };
    struct Model {
        ParzenEstimator below;
        ParzenEstimator above;
    };

    [[nodiscard]] std::vector<Model> models(const std::vector<Seen>& in_training) const;
    [[nodiscard]] Seen seen(const Individual& individual) const;
    /// Those in which a group is active, best first.
    [[nodiscard]] std::vector<std::size_t> ranking(std::size_t group) const;
    /// Of the candidates that obey the constraints, gene group by gene group, where there are such.
    [[nodiscard]] Genome draw(const std::vector<Model>& models, std::span<const Constraint> constraints,
                              RandomStream& random) const;
    /// Leaves the newest and the best of each group.
    void forget();

    TpeOptions options_;
    Space space_;
    std::vector<std::vector<std::size_t>> groups_;
    std::vector<std::size_t> active_;  ///< results, by group
    std::vector<Seen> seen_;           ///< in their canonical order
};

}  // namespace finch::search
