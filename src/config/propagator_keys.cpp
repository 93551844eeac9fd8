#include "finch/search/propagator.hpp"
#include "finch/search/pruning.hpp"

#include "bind.hpp"
#include "domains.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// The keys of search.propagator and search.pruning. Alternatives are listed in the order of the types in their
/// std::variant.
namespace finch::config {
namespace {

void check_swarm(const search::SwarmOptions& swarm, const Tree& written) {
    const double sum = swarm.cognitive.value_or(2.05) + swarm.social.value_or(2.05);
    if (swarm.variant == search::SwarmVariant::canonical && !(sum > 4)) {
        fail(written, "swarm",
             fmt::format("'canonical' needs cognitive + social above 4, not {}: below, nothing is constricted; 'basic' "
                         "takes any",
                         sum));
    }
}

Domain swarm_section() {
    using Options = search::SwarmOptions;
    const auto usual = [](Domain domain) { return either({word_of({"auto"}), std::move(domain)}); };
    return {
        Section{.keys = {key("variant", &Options::variant,
                             "velocity rule: basic: inertia; canonical: a constriction factor and limited velocities"),
                         key("particles", &Options::particles, usual(whole(2, million)),
                             "number of particles; auto: 40, or one per worker of the island if that is more"),
                         key("inertia", &Options::inertia, real(0, 1.5), "inertia weight of basic"),
                         key("cognitive", &Options::cognitive, usual(real(0, 10)),
                             "weight of a particle's own best position; auto: 1.49445 for basic, 2.05 for canonical"),
                         key("social", &Options::social, usual(real(0, 10)),
                             "weight of the best position of all particles; auto: the same values as for cognitive"),
                         key("clamping", &Options::clamping, usual(above(0, 10)),
                             "largest velocity, as a share of the range; auto: no limit for basic, 1 for canonical")},
                .check = check_of<Options>(check_swarm)}};
}

/// Returns n for "nx workers"; empty if `text` has another form.
std::optional<std::int64_t> multiple_of_workers(const std::string& text) {
    std::int64_t times = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, times);
    const bool is_multiple = error == std::errc{} && std::string_view(end, last) == "x workers" && text.front() != '0';
    return is_multiple && 1 <= times && times <= 1000 ? std::optional(times) : std::nullopt;
}

/// The key `population` of the propagator genetic: a number, or a multiple of the number of workers.
Key genetic_population() {
    const Text multiple{"1x workers to 1000x workers",
                        [](const std::string& text) { return multiple_of_workers(text).has_value(); },
                        {"1x workers", "1000x workers"},
                        {"0x workers", "1001x workers", "2 x workers", "2x worker", "x workers", "02x workers"}};
    const auto set = [](const Tree& tree, const Target& place) {
        auto& genetic = place.as<search::GeneticOptions>();
        genetic.population_per_worker = multiple_of_workers(tree.text).value_or(0);
        genetic.population = std::max<std::int64_t>(2, whole_number(tree).value_or(genetic.population_per_worker));
    };
    return {"population", "16", either({whole(2, million), {multiple}}),
            "number of an island's best individuals from which parents are drawn; 2x workers: twice the number of the "
            "island's workers, anew at each start",
            set};
}

}  // namespace

Domain propagator() {
    using Any = search::PropagatorOptions;
    using search::GeneticOptions;
    return {Variants{{
        alternative<Any>("auto", search::AutomaticOptions{}, {},
                         "screened for an island's first 1000 results, if its models take less than a quarter of an "
                         "evaluation's time; then evolution"),
        alternative<Any>(
            "genetic", GeneticOptions{},
            {{genetic_population(),
              key("crossover", &GeneticOptions::crossover, real(0, 1),
                  "probability that a gene comes from the first parent"),
              key("mutation", &GeneticOptions::mutation, real(0, 1), "probability that one gene is drawn anew"),
              key("random", &GeneticOptions::random, real(0, 1), "probability that all genes are drawn anew"),
              key("sigma", &GeneticOptions::sigma, real(0, 10),
                  "standard deviation of a real gene's change, as a share of its range")}},
            "crossover and mutation, as in Propulate's default chain"),
        alternative<Any>("random", search::RandomSearchOptions{}, {}, "random search"),
        alternative<Any>(
            "evolution", search::EvolutionOptions{},
            {{key("cma_share", &search::EvolutionOptions::cma_share, real(0, 0.9),
                  "share of the individuals that CMA-ES breeds; differential evolution breeds the others"),
              key("mutation_share", &search::EvolutionOptions::mutation_share, real(0, 1),
                  "in the first phase: share of these other individuals that crossover and mutation of few genes breed "
                  "instead")}},
            "differential evolution (L-SHADE) and CMA-ES, without generations: for 1000 evaluations or more"),
        alternative<Any>(
            "screened", search::ScreenedOptions{},
            {{key("most_points", &search::ScreenedOptions::most_points, whole(20, 2000),
                  "maximum number of results that the global model uses: half of them the best, half the newest")}},
            "Gaussian processes, one of all results and one of the best results: for up to 1000 evaluations"),
        alternative<Any>(
            "cmaes", search::CmaEsOptions{},
            {{key("population", &search::CmaEsOptions::population, either({word_of({"auto"}), whole(4, million)}),
                  "samples per generation; auto: 4 + 3 ln(number of genes), at least half of the island's workers"),
              key("sigma", &search::CmaEsOptions::sigma, above(0, 10),
                  "initial standard deviation, as a share of the range"),
              key("restarts", &search::CmaEsOptions::restarts,
                  "restarts after a start of CMA-ES has ended: ipop doubles the samples each time; bipop also makes "
                  "small restarts with few samples")}},
            "CMA-ES: for numeric genes that depend on each other"),
        alternative<Any>("swarm", search::SwarmOptions{}, std::get<Section>(swarm_section().is), "a particle swarm"),
        alternative<Any>(
            "nelder_mead", search::NelderMeadOptions{},
            {{key("parallel", &search::NelderMeadOptions::parallel, either({word_of({"auto"}), whole(1, 500)}),
                  "number of vertices of a simplex that move at the same time, at most half the number of genes; auto: "
                  "a third of it, at most one per worker"),
              key("size", &search::NelderMeadOptions::size, above(0, 1),
                  "edge length of a new simplex, as a share of the range")}},
            "Nelder and Mead's simplex method, in parallel: for numbers and ordered choices"),
    }}};
}

Domain pruning() {
    using Any = search::PruningOptions;
    using search::CurveOptions;
    using search::HalvingOptions;
    using search::MedianOptions;
    return {Variants{{
        alternative<Any>("none", search::NoPruning{}, {}, "every training runs to its end"),
        alternative<Any>(
            "halving", HalvingOptions{},
            {{key("first_epoch", &HalvingOptions::first_epoch, whole(1, million),
                  "epoch of the first rung; at a rung, trainings are compared with each other"),
              key("factor", &HalvingOptions::factor, whole(2, 1000),
                  "at a rung, one of this many trainings continues; the next rung is at this multiple of the epoch")}},
            "asynchronous successive halving: at epochs 1, 3, 9, … the best third continues"),
        alternative<Any>(
            "median", MedianOptions{},
            {{key("first_epoch", &MedianOptions::first_epoch, whole(1, million),
                  "epoch of the first rung; at a rung, trainings are compared with each other"),
              key("factor", &MedianOptions::factor, whole(2, 1000), "the next rung is at this multiple of the epoch"),
              key("least", &MedianOptions::least, whole(1, million),
                  "a training can end at a rung only if at least this many others have reached it")}},
            "at epochs 2, 4, 8, … trainings end that are worse than the median of the others there"),
        alternative<Any>("curve", CurveOptions{},
                         {{key("first_epoch", &CurveOptions::first_epoch, whole(4, million),
                               "first epoch after which the learning curve is extrapolated"),
                           key("least", &CurveOptions::least, whole(1, million),
                               "a training can end early only if at least this many others are complete")}},
                         "extrapolates each learning curve by a power law; a training ends if its optimistic final "
                         "value is worse than the median of complete trainings"),
    }}};
}

}  // namespace finch::config
