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

/// Result of breeding: a genome and its origin.
struct Offspring {
    Genome genome;
    std::array<Id, 2> parents{};
    Operator bred_by = Operator::random;
    Breeding breeding = {};
};

/// How far the search is, as the worker that breeds knows it.
struct Stage {
    double budget_used = 0;        ///< the largest used share of any budget, in [0, 1]; 0 without one that is counted
    std::int64_t evaluations = 0;  ///< that the island is to have; 0: not known
    std::int32_t workers = 1;      ///< of the island
    std::uint64_t births = 0;      ///< of the island, about: what its workers bred so far if all bred alike
    std::uint32_t attempt = 0;     ///< genomes that were bred for this birth before and ruled out
    std::span<const Constraint> constraints = {};  ///< a genome that breaks one is ruled out
};

/// Breeds one individual from what is known on an island. What it breeds depends on the population, the stage and the
/// random numbers alone: what it keeps between two calls is a fold over the population's results, which it could make
/// anew. One for each population.
class Propagator {
public:
    virtual ~Propagator() = default;
    [[nodiscard]] virtual Offspring breed(const Population& population, int island, const Stage& stage,
                                          RandomStream& random) = 0;
    /// It looks at no more than so many of an island's best.
    [[nodiscard]] virtual std::size_t population() const noexcept = 0;
    /// How many individuals come before it has something to breed from, in a search of so many evaluations (0: not
    /// known); 0: it breeds from nothing.
    [[nodiscard]] virtual std::size_t first_points(std::int64_t /*evaluations*/) const noexcept { return population(); }
    /// Whether it breeds better where it knows what is in training on the island.
    [[nodiscard]] virtual bool looks_at_training() const noexcept { return false; }
};

// make() follows the options of each propagator. `seed` of the run: what propagators keep follows from it and the
// results.

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
/// Throws ConfigError if an option is out of its bounds.
[[nodiscard]] std::unique_ptr<Propagator> make(const GeneticOptions& options, const Space& space, std::uint64_t seed);

struct RandomSearchOptions {};
[[nodiscard]] std::unique_ptr<Propagator> make(const RandomSearchOptions& options, const Space& space,
                                               std::uint64_t seed);

/// L-SHADE (Tanabe and Fukunaga 2014) without generations, and a share of CMA-ES beside it. With 10 000 evaluations or
/// more in two phases, the second far from what the first found. For many evaluations.
struct EvolutionOptions {
    double cma_share = 0.15;      ///< of the births that go to CMA-ES
    double mutation_share = 0.4;  ///< of the others in the first phase that go to crossover and mutation of few genes
};
[[nodiscard]] std::unique_ptr<Propagator> make(const EvolutionOptions& options, const Space& space, std::uint64_t seed);

/// Half of the births: the least lower confidence bound μ − κσ of a Gaussian process of the best results' losses, near
/// them; the others: of a Gaussian process of all results' ranks, among 200 candidates. For few evaluations.
struct ScreenedOptions {
    std::int64_t most_points = 250;  ///< that the model of ranks knows
};
[[nodiscard]] std::unique_ptr<Propagator> make(const ScreenedOptions& options, const Space& space, std::uint64_t seed);

/// Like ScreenedOptions while an island has few results and the model costs less than a quarter of an evaluation, else
/// like EvolutionOptions.
struct AutomaticOptions {
    double model_seconds = 2e-7;        ///< of breeding one individual, per squared result that the model knows
    std::int64_t most_screened = 1000;  ///< results of an island that the model breeds from
};
[[nodiscard]] std::unique_ptr<Propagator> make(const AutomaticOptions& options, const Space& space, std::uint64_t seed);

/// Whether CMA-ES begins again where it has ended: each time with twice the samples (Auger and Hansen 2005); or with
/// few, too, as long as those have used less (Hansen 2009).
enum class Restarts { none, ipop, bipop };
constexpr std::array<std::string_view, 3> words_of(Restarts) {
    return {"none", "ipop", "bipop"};
}

/// CMA-ES (Hansen 2016, arXiv:1604.00772) with negative weights and restarts; with a margin where values are apart
/// (Hamano et al. 2022). For genes that depend on each other.
struct CmaEsOptions {
    std::int64_t population = 0;  ///< samples a generation; 0: 4 + 3 ln n, at least half of the island's workers
    double sigma = 0.2;           ///< first deviation, in ranges
    Restarts restarts = Restarts::bipop;
};
[[nodiscard]] std::unique_ptr<Propagator> make(const CmaEsOptions& options, const Space& space, std::uint64_t seed);

/// Velocities of a particle swarm: with inertia; the same, clamped; with a constriction factor instead; the same,
/// clamped.
enum class SwarmVariant { basic, clamped, constriction, canonical };
constexpr std::array<std::string_view, 4> words_of(SwarmVariant) {
    return {"basic", "clamped", "constriction", "canonical"};
}
/// Whether a factor constricts velocities, and whether a bound clamps them.
struct SwarmLimits {
    bool constricts = false;
    bool clamps = false;
};
[[nodiscard]] constexpr SwarmLimits limits_of(SwarmVariant variant) noexcept {
    switch (variant) {
        case SwarmVariant::basic:
            return {};
        case SwarmVariant::clamped:
            return {.constricts = false, .clamps = true};
        case SwarmVariant::constriction:
            return {.constricts = true, .clamps = false};
        case SwarmVariant::canonical:
            return {.constricts = true, .clamps = true};
    }
    return {};
}

/// A particle swarm whose particles know the best place of all (Kennedy and Eberhart 1995), without generations.
struct SwarmOptions {
    SwarmVariant variant = SwarmVariant::canonical;
    std::int64_t particles = 0;            ///< 0: 40, at least one for each of the island's workers
    double inertia = 0.729;                ///< basic, clamped
    std::optional<double> cognitive = {};  ///< towards the particle's best; nothing: 1.49445, constricted 2.05
    std::optional<double> social = {};     ///< towards the best of all; the same
    std::optional<double> clamping = {};   ///< largest velocity in ranges; nothing: clamped 0.6, canonical 1
};
[[nodiscard]] std::unique_ptr<Propagator> make(const SwarmOptions& options, const Space& space, std::uint64_t seed);

/// A tree-structured Parzen estimator (Bergstra et al. 2011) with kernels of all genes together (Watanabe 2023,
/// arXiv:2304.11127): of `candidates` draws from the density of the best share `gamma`, at most 25, the one that is
/// likeliest there against the density of all others and of what is in training. Genes of one `when` are modelled
/// together, from the individuals in which they are active.
struct TpeOptions {
    std::int64_t startup = 10;        ///< results before which all is random
    std::int64_t candidates = 24;     ///< at least 1
    double gamma = 0.1;               ///< in (0, 1)
    std::int64_t most_points = 1000;  ///< results that it knows: the best and the newest
};
[[nodiscard]] std::unique_ptr<Propagator> make(const TpeOptions& options, const Space& space, std::uint64_t seed);

/// Nelder and Mead's simplex of 1965, of which several vertices move at once (Lee and Wiswall 2007), and as many
/// simplices as keep the workers busy. A simplex that has ended begins again. For real and whole numbers and ordered
/// choices.
struct NelderMeadOptions {
    std::int64_t parallel =
        0;              ///< vertices that move at once, at most half of the genes; 0: a third, at most one a worker
    double size = 0.2;  ///< of a first simplex, in ranges
};
[[nodiscard]] std::unique_ptr<Propagator> make(const NelderMeadOptions& options, const Space& space,
                                               std::uint64_t seed);

using PropagatorOptions = std::variant<GeneticOptions, RandomSearchOptions, EvolutionOptions, ScreenedOptions,
                                       AutomaticOptions, CmaEsOptions, SwarmOptions, TpeOptions, NelderMeadOptions>;

/// make() of the options that these are.
[[nodiscard]] std::unique_ptr<Propagator> make_propagator(const PropagatorOptions& options, const Space& space,
                                                          std::uint64_t seed);

/// What is in training on `island`, as far as `population` knows.
[[nodiscard]] std::vector<const Individual*> in_training_on(const Population& population, int island);

}  // namespace finch::search
