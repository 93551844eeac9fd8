#pragma once

#include "finch/search/individual.hpp"
#include "finch/search/propagator.hpp"

#include "unit_genome.hpp"

#include <Eigen/Dense>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace finch::search {

/// What a model knows of a result.
struct Seen {
    UnitGenome point;
    double loss = 0;  ///< as comparable_loss() gives it: +inf: none
    std::int32_t rung = top_rung;
    Id id;
    std::uint64_t history = 0;  ///< a hash of all results up to this one
};

/// What a model proposes.
struct Proposal {
    Genome genome;
    std::array<Id, 2> parents{};  ///< none: drawn uniformly
};

/// Accepts proposals that are neither known nor in training and obey the constraints.
struct Allowed {
    const Space& space;
    const std::set<Genome>& known;
    std::set<Genome> in_training;
    std::span<const Constraint> constraints;

    [[nodiscard]] bool is_unknown(const Genome& genome) const {
        return !known.contains(genome) && !in_training.contains(genome);
    }
    [[nodiscard]] bool holds(const Genome& genome) const { return all_hold(constraints, space, genome); }
    [[nodiscard]] bool accepts(const Genome& genome) const { return is_unknown(genome) && holds(genome); }
};

/// By gene: 1, or 0 for a choice.
[[nodiscard]] Eigen::VectorXd numbers_of(const Space& space);
/// Points as columns.
[[nodiscard]] Eigen::MatrixXd columns(const std::vector<UnitGenome>& points, std::size_t genes);

/// The number of results at the latest due fit of a model's scales, 0 below `first`. Fits are due at `first` results
/// and then each time `share` more of them came, three at least. So leaders that know the same results use the same
/// scales, whenever they breed.
[[nodiscard]] std::size_t fitted_results(std::size_t results, std::size_t first, double share);

}  // namespace finch::search
