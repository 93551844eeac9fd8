#pragma once

#include "finch/search/constraint.hpp"
#include "finch/search/population.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace finch::search {

/// The result of breeding: a genome and its origin.
struct Offspring {
    Genome genome;
    std::array<Id, 2> parents{};
    Operator bred_by = Operator::random;
    Breeding breeding = {};
};

/// The progress of the search, as far as the worker that breeds knows it.
struct Stage {
    double budget_used = 0;        ///< the largest used fraction of any budget, in [0, 1]; 0 if no budget is counted
    std::int64_t evaluations = 0;  ///< expected number of evaluations on the island; 0: not known
    std::int32_t workers = 1;      ///< number of workers of the island
    /// Approximate number of births on the island so far, assuming that all its workers bred equally many individuals.
    std::uint64_t births = 0;
    std::uint32_t attempt = 0;  ///< number of genomes that were already bred for this birth and ruled out
    std::span<const Constraint> constraints = {};  ///< a genome that violates one is ruled out
};

/// Breeds one individual from the known individuals of an island. The bred individual depends only on the population,
/// the stage and the random numbers. A propagator may keep state between two calls, but this state can always be
/// recomputed from the population's results. Each population needs its own propagator.
class Propagator {
public:
    virtual ~Propagator() = default;
    [[nodiscard]] virtual Offspring breed(const Population& population, int island, const Stage& stage,
                                          RandomStream& random) = 0;
    /// Returns the number of individuals that must exist before the propagator can breed from them; 0 if it needs none.
    /// `evaluations`: the number of evaluations of the search; 0: not known.
    [[nodiscard]] virtual std::size_t first_points(std::int64_t /*evaluations*/) const noexcept { return 0; }
    /// Returns whether the propagator breeds better if it knows the individuals in training on the island.
    [[nodiscard]] virtual bool looks_at_training() const noexcept { return false; }
};

// The options of each propagator are followed by a function make() that creates it. `seed`: the seed of the run. The
// state of a propagator depends only on the seed and the results.

/// Propulate's default chain (Taubert et al., ISC 2023; its get_default_propagator). Genomes are random until
/// `population` individuals are active. After that, each genome is bred in these steps:
/// - Two different parents are drawn uniformly from the best `population` individuals.
/// - Each gene comes from the first parent with probability `crossover`, otherwise from the second.
/// - With probability `mutation`, one gene gets a new uniformly random value.
/// - One real gene, if there is one, moves by a normal random number with deviation `sigma` times its range (for
///   Scale::log, the range of its logarithm), and is clamped.
/// - With probability `random`, the whole genome is replaced by a random one.
struct GeneticOptions {
    std::int64_t population = 16;  ///< at least 2
    double crossover = 0.7;
    double mutation = 0.4;
    double random = 0.1;
    double sigma = 0.05;
    /// The population as a multiple of the number of workers of the island, before a start replaces it by a number; 0:
    /// `population` is the number.
    std::int64_t population_per_worker = 0;
};
/// Throws ConfigError if an option is out of its bounds.
[[nodiscard]] std::unique_ptr<Propagator> make(const GeneticOptions& options, const Space& space, std::uint64_t seed);

struct RandomSearchOptions {};
[[nodiscard]] std::unique_ptr<Propagator> make(const RandomSearchOptions& options, const Space& space,
                                               std::uint64_t seed);

/// Asynchronous L-SHADE (Tanabe and Fukunaga 2014), combined with CMA-ES, for searches with many evaluations. Searches
/// with 10 000 evaluations or more have two phases; the second phase starts far from the optimum of the first. With
/// many workers, an additive model of the best results breeds up to half of the individuals. With several objectives,
/// breeds from the fronts with the operators of NSGA-II instead.
struct EvolutionOptions {
    double cma_share = 0.15;  ///< fraction of all births that CMA-ES breeds
    /// Fraction of births that use crossover and mutation of few genes, among the births without CMA-ES in phase 1.
    double mutation_share = 0.4;
};
[[nodiscard]] std::unique_ptr<Propagator> make(const EvolutionOptions& options, const Space& space, std::uint64_t seed);

/// Bayesian optimisation with two Gaussian processes, for searches with few evaluations. For half of the births, the
/// lower confidence bound μ − κσ of a Gaussian process of the best losses is minimised near the best results. For the
/// other half, a Gaussian process of the ranks of all results selects one of 200 candidates by this bound. With several
/// objectives, each objective has its own processes. Each birth draws a direction, in which the bounds are combined.
struct ScreenedOptions {
    std::int64_t most_points = 250;  ///< number of results that the model of ranks uses
};
[[nodiscard]] std::unique_ptr<Propagator> make(const ScreenedOptions& options, const Space& space, std::uint64_t seed);

/// Breeds like ScreenedOptions while an island has few results and the model takes less than a quarter of an
/// evaluation's time; otherwise breeds like EvolutionOptions. If the island has more workers than half of
/// most_screened, always breeds like EvolutionOptions.
struct AutomaticOptions {
    double model_seconds = 2e-7;        ///< time to breed one individual / squared number of results in the model
    std::int64_t most_screened = 1000;  ///< number of results of an island up to which the model breeds
};
[[nodiscard]] std::unique_ptr<Propagator> make(const AutomaticOptions& options, const Space& space, std::uint64_t seed);

/// Restarts of CMA-ES after a start has ended. ipop: each restart doubles the number of samples (Auger and Hansen
/// 2005). bipop: also makes small restarts with few samples, as long as these have used fewer evaluations than the
/// large ones (Hansen 2009).
enum class Restarts { none, ipop, bipop };
constexpr std::array<std::string_view, 3> words_of(Restarts) {
    return {"none", "ipop", "bipop"};
}

/// CMA-ES (Hansen 2016, arXiv:1604.00772) with negative weights, restarts, and a margin for discrete genes (Hamano et
/// al. 2022). CMA-ES is suited to genes that depend on each other.
struct CmaEsOptions {
    std::int64_t population = 0;  ///< samples per generation; 0: 4 + 3 ln n, at least half of the island's workers
    double sigma = 0.2;           ///< first standard deviation, as a fraction of the range
    Restarts restarts = Restarts::bipop;
};
[[nodiscard]] std::unique_ptr<Propagator> make(const CmaEsOptions& options, const Space& space, std::uint64_t seed);

/// How a particle swarm computes velocities. basic: an inertia weight (Shi and Eberhart 1998). canonical: a
/// constriction factor and limited velocities (Clerc and Kennedy 2002, Eberhart and Shi 2000).
enum class SwarmVariant { basic, canonical };
constexpr std::array<std::string_view, 2> words_of(SwarmVariant) {
    return {"basic", "canonical"};
}

/// A particle swarm without generations, in which all particles know the best position of all (Kennedy and Eberhart
/// 1995).
struct SwarmOptions {
    SwarmVariant variant = SwarmVariant::canonical;
    std::int64_t particles = 0;            ///< 0: 40, or one per worker of the island if that is more
    double inertia = 0.729;                ///< for basic
    std::optional<double> cognitive = {};  ///< weight of the particle's best; default: basic 1.49445, canonical 2.05
    std::optional<double> social = {};     ///< weight of the best position of all; the same defaults
    std::optional<double> clamping = {};   ///< largest velocity / range; default: basic no limit, canonical 1
};
[[nodiscard]] std::unique_ptr<Propagator> make(const SwarmOptions& options, const Space& space, std::uint64_t seed);

/// The simplex method of Nelder and Mead (1965), in which several vertices move at the same time (Lee and Wiswall
/// 2007). There are enough simplices to keep all workers busy, and a simplex that has ended starts again. Only real and
/// integer genes and ordered choices are supported.
struct NelderMeadOptions {
    /// Number of vertices that move at the same time, at most half of the number of genes. The default 0 means a third
    /// of the number of genes, but at most one per worker.
    std::int64_t parallel = 0;
    double size = 0.2;  ///< edge length of a new simplex, as a fraction of the range
};
[[nodiscard]] std::unique_ptr<Propagator> make(const NelderMeadOptions& options, const Space& space,
                                               std::uint64_t seed);

using PropagatorOptions = std::variant<GeneticOptions, RandomSearchOptions, EvolutionOptions, ScreenedOptions,
                                       AutomaticOptions, CmaEsOptions, SwarmOptions, NelderMeadOptions>;

/// Returns whether the propagator can minimise costs in addition to the loss.
[[nodiscard]] bool supports_costs(const PropagatorOptions& options) noexcept;

/// Creates the propagator that belongs to the type of `options`.
[[nodiscard]] std::unique_ptr<Propagator> make_propagator(const PropagatorOptions& options, const Space& space,
                                                          std::uint64_t seed);

/// Returns the individuals in training on `island`, as far as `population` knows them.
[[nodiscard]] std::vector<const Individual*> in_training_on(const Population& population, int island);

}  // namespace finch::search
