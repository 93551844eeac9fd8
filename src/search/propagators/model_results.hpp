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

/// The data of a result that models use.
struct Seen {
    UnitGenome point;
    double loss = 0;  ///< from comparable_loss(); +inf: no loss
    /// By objective: the loss, then the costs.
    Eigen::VectorXd values;
    std::int32_t rung = top_rung;
    Id id;
    std::uint64_t history = 0;  ///< a hash of all results up to this one
};

/// A genome that a model proposes.
struct Proposal {
    Genome genome;
    std::array<Id, 2> parents{};  ///< none: the genome was drawn uniformly
};

/// Accepts genomes that are neither known nor in training and satisfy all constraints.
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

/// Returns, for each gene, 1 for a number or 0 for an unordered choice.
[[nodiscard]] Eigen::VectorXd numbers_of(const Space& space);
/// Returns a matrix with the points as columns.
[[nodiscard]] Eigen::MatrixXd columns(const std::vector<UnitGenome>& points, std::size_t genes);

/// Returns the number of results at the last due fit of a model's scales, or 0 if there are fewer than `first`. The
/// first fit is due at `first` results. Another fit is due each time the number of results has grown by the fraction
/// `share`, but at least by three. Leaders that know the same results therefore use the same scales, regardless of when
/// they breed.
[[nodiscard]] std::size_t fitted_results(std::size_t results, std::size_t first, double share);

}  // namespace finch::search
