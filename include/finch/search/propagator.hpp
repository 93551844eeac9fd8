#pragma once

#include "finch/search/population.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <variant>

namespace finch::search {

/// What a propagator gives: a genome and where it came from.
struct Offspring {
    Genome genome;
    std::array<Id, 2> parents{};
    Operator bred_by = Operator::random;
};

/// Breeds one individual from what is active on an island. Stateless: the outcome depends on the population that it is
/// shown and on the random numbers that it is handed, so any breeding can be repeated.
class Propagator {
public:
    virtual ~Propagator() = default;
    [[nodiscard]] virtual Offspring breed(const Population& population, int island, RandomStream& random) const = 0;
    /// It looks at no more than so many of an island's best.
    [[nodiscard]] virtual std::size_t population() const noexcept = 0;
};

/// Propulate's default chain (Taubert et al., ISC 2023; its get_default_propagator): random until `population`
/// individuals are active; then two different parents, uniformly among the best `population`; each gene from the first
/// with probability `crossover`; with probability `mutation` one gene anew, uniformly; one real gene (where there is
/// one) moved by a normal of deviation `sigma` of its range (of its logarithm's range for Scale::log), clamped; with
/// probability `random` all of it replaced by a random genome.
struct GeneticOptions {
    std::int64_t population = 16;  ///< at least 2
    double crossover = 0.7;
    double mutation = 0.4;
    double random = 0.1;
    double sigma = 0.05;
};
struct RandomSearchOptions {};
using PropagatorOptions = std::variant<GeneticOptions, RandomSearchOptions>;

[[nodiscard]] std::unique_ptr<Propagator> make_propagator(const PropagatorOptions& options, const Space& space);

}  // namespace finch::search
