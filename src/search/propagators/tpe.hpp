#pragma once

#include "finch/search/propagator.hpp"

#include "parzen.hpp"

#include <cstddef>
#include <vector>

namespace finch::search {

/// The state of the propagator for TpeOptions: the best and the newest results of an island, added one by one.
class TpeState {
public:
    TpeState(const TpeOptions& options, Space space);

    void take(const Individual& individual, bool born_here);
    /// Breeds an individual. `in_training`: the individuals in training on the island. Individuals in training count
    /// among the worse results (the constant liar of Ginsbourger, Le Riche and Carraro 2010, with the worst loss).
    [[nodiscard]] Offspring breed(const std::vector<const Individual*>& in_training,
                                  std::span<const Constraint> constraints, RandomStream& random) const;

    /// Returns the groups of genes that are active together. Genes that decide whether a group is active are in earlier
    /// groups.
    [[nodiscard]] const std::vector<std::vector<std::size_t>>& groups() const noexcept { return groups_; }
    /// The points from which the two densities of a group are estimated.
    struct Split {
        std::vector<const UnitGenome*> below;  ///< the best results, best first
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
    /// Returns the results in which a group is active, best first.
    [[nodiscard]] std::vector<std::size_t> ranking(std::size_t group) const;
    /// Draws a genome, one group of genes after the other. Each group is selected among candidates that satisfy the
    /// constraints, if there are any.
    [[nodiscard]] Genome draw(const std::vector<Model>& models, std::span<const Constraint> constraints,
                              RandomStream& random) const;
    /// Keeps only the newest results and the best results of each group.
    void forget();

    TpeOptions options_;
    Space space_;
    std::vector<std::vector<std::size_t>> groups_;
    std::vector<std::size_t> active_;  ///< number of results in which each group is active
    std::vector<Seen> seen_;           ///< in canonical order
};

}  // namespace finch::search
