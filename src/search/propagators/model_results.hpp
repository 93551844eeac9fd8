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
};

/// What a model proposes.
struct Proposal {
    Genome genome;
    std::array<Id, 2> parents{};  ///< none: drawn uniformly
};

/// What a proposal may not be: known, in training, or ruled out by a constraint.
struct Allowed {
    const Space& space;
    const std::set<Genome>& known;
    std::set<Genome> in_training;
    std::span<const Constraint> constraints;

    [[nodiscard]] bool is_unknown(const Genome& genome) const {
        return !known.contains(genome) && !in_training.contains(genome);
    }
    [[nodiscard]] bool holds(const Genome& genome) const { return all_hold(constraints, space, genome); }
};

/// By gene.
[[nodiscard]] std::vector<char> choices_of(const Space& space);
/// Points as columns.
[[nodiscard]] Eigen::MatrixXd columns(const std::vector<UnitGenome>& points, std::size_t genes);

/// When scales are fitted again: at first, then after so large a share of results, three at least.
class Refits {
public:
    Refits(std::size_t first, double share) : next_(first), share_(share) {}
    /// Iterations for what is known now; 0: none.
    [[nodiscard]] int iterations(std::size_t results);

private:
    std::size_t next_;
    double share_;
    bool is_first_ = true;
};

}  // namespace finch::search
