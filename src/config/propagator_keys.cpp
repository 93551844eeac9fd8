#include "finch/search/propagator.hpp"
#include "finch/search/pruning.hpp"

#include "bind.hpp"
#include "domains.hpp"

#include <utility>

/// The keys of search.propagator and search.pruning. Alternatives are listed in the order of the types in their
/// std::variant.
namespace finch::config {
namespace {

void check_swarm(const search::SwarmOptions& swarm, const Tree& written) {
    const double sum = swarm.cognitive.value_or(2.05) + swarm.social.value_or(2.05);
    if (search::limits_of(swarm.variant).constricts && !(sum > 4)) {
        fail(written, "swarm",
             fmt::format(
                 "'{}' needs cognitive + social above 4, not {}: below, nothing is constricted; basic and clamped "
                 "take any",
                 word(swarm.variant), sum));
    }
}

Domain swarm_section() {
    using Options = search::SwarmOptions;
    const auto usual = [](Domain domain) { return either({word_of({"auto"}), std::move(domain)}); };
    return {Section{
        .keys =
            {key("variant", &Options::variant,
                 "basic: inertia; clamped: that, and velocities clamped; constriction: a factor in place of inertia; "
                 "canonical: that, and velocities clamped"),
             key("particles", &Options::particles, usual(whole(2, million)),
                 "auto: 40, or as many as the island has workers"),
             key("inertia", &Options::inertia, real(0, 1.5), "of basic and clamped"),
             key("cognitive", &Options::cognitive, usual(real(0, 10)),
                 "weight of a particle's own best; auto: 1.49445, with constriction 2.05"),
             key("social", &Options::social, usual(real(0, 10)), "weight of the best of all; auto: as cognitive"),
             key("clamping", &Options::clamping, usual(above(0, 10)),
                 "largest velocity of clamped and canonical, in ranges; auto: 0.6 and 1")},
        .check = check_of<Options>(check_swarm)}};
}

}  // namespace

Domain propagator() {
    using Any = search::PropagatorOptions;
    using search::GeneticOptions;
    using search::TpeOptions;
    return {Variants{{
        alternative<Any>("auto", search::AutomaticOptions{}, {},
                         "screened for an island's first 1000 results, then evolution"),
        alternative<Any>(
            "genetic", GeneticOptions{},
            {{key("population", &GeneticOptions::population, whole(2, million),
                  "parents are drawn from the best so many of an island"),
              key("crossover", &GeneticOptions::crossover, real(0, 1),
                  "probability that a gene comes from the first parent"),
              key("mutation", &GeneticOptions::mutation, real(0, 1), "probability that one gene is drawn anew"),
              key("random", &GeneticOptions::random, real(0, 1), "probability that all genes are drawn anew"),
              key("sigma", &GeneticOptions::sigma, real(0, 10),
                  "deviation of a real gene's change, as a share of its range")}},
            "crossover and mutation, as Propulate's default chain does it"),
        alternative<Any>("random", search::RandomSearchOptions{}, {}, "random search"),
        alternative<Any>(
            "evolution", search::EvolutionOptions{},
            {{key("cma_share", &search::EvolutionOptions::cma_share, real(0, 0.9),
                  "of the individuals that CMA-ES breeds; the others come from differential evolution"),
              key("mutation_share", &search::EvolutionOptions::mutation_share, real(0, 1),
                  "of those others, in the first phase: crossover and mutation of few genes")}},
            "differential evolution (L-SHADE) and CMA-ES, without generations: for 1000 evaluations or more"),
        alternative<Any>("screened", search::ScreenedOptions{},
                         {{key("most_points", &search::ScreenedOptions::most_points, whole(20, 2000),
                               "results that the global model knows: the best half and the newest")}},
                         "Gaussian processes of all results and of the best ones: for up to 1000 evaluations"),
        alternative<Any>(
            "cmaes", search::CmaEsOptions{},
            {{key("population", &search::CmaEsOptions::population, either({word_of({"auto"}), whole(4, million)}),
                  "samples of a generation; auto: 4 + 3 ln of the genes, half of the island's workers at least"),
              key("sigma", &search::CmaEsOptions::sigma, above(0, 10), "first deviation, in ranges"),
              key("restarts", &search::CmaEsOptions::restarts,
                  "where a start has ended: ipop doubles the samples, bipop takes turns with few")}},
            "CMA-ES: for numbers that depend on each other"),
        alternative<Any>("swarm", search::SwarmOptions{}, std::get<Section>(swarm_section().is), "a particle swarm"),
        alternative<Any>(
            "tpe", TpeOptions{},
            {{key("startup", &TpeOptions::startup, whole(1, million), "results before which all is random"),
              key("candidates", &TpeOptions::candidates, whole(1, 10000), "of which the likeliest good one is bred"),
              key("gamma", &TpeOptions::gamma, real(0.001, 0.9),
                  "share of the results that counts as good, 25 of them at most"),
              key("most_points", &TpeOptions::most_points, whole(50, 100000),
                  "results that it knows: the best and the newest")}},
            "a tree-structured Parzen estimator: for up to 500 evaluations, choices and conditions above all"),
        alternative<Any>(
            "nelder_mead", search::NelderMeadOptions{},
            {{key("parallel", &search::NelderMeadOptions::parallel, either({word_of({"auto"}), whole(1, 500)}),
                  "vertices of a simplex that move at once, at most half of the genes; auto: a third, at most one a "
                  "worker"),
              key("size", &search::NelderMeadOptions::size, above(0, 1), "of a first simplex, in ranges")}},
            "Nelder and Mead's simplex, in parallel: for numbers and ordered choices"),
    }}};
}

Domain pruning() {
    using Any = search::PruningOptions;
    using search::CurveOptions;
    using search::HalvingOptions;
    using search::MedianOptions;
    return {Variants{{
        alternative<Any>("none", search::NoPruning{}, {}, "every training runs to its end"),
        alternative<Any>("halving", HalvingOptions{},
                         {{key("first_epoch", &HalvingOptions::first_epoch, whole(1, million), "the first rung"),
                           key("factor", &HalvingOptions::factor, whole(2, 1000),
                               "one in so many continues; the next rung is so many times as far")}},
                         "asynchronous successive halving: at epochs 1, 3, 9, … the best third continues"),
        alternative<Any>(
            "median", MedianOptions{},
            {{key("first_epoch", &MedianOptions::first_epoch, whole(1, million), "the first rung"),
              key("factor", &MedianOptions::factor, whole(2, 1000), "the next rung is so many times as far"),
              key("least", &MedianOptions::least, whole(1, million), "others at a rung, before which none ends")}},
            "at epochs 2, 4, 8, … those end that are worse than the median there"),
        alternative<Any>(
            "curve", CurveOptions{},
            {{key("first_epoch", &CurveOptions::first_epoch, whole(4, million),
                  "after which the curve is first extrapolated"),
              key("least", &CurveOptions::least, whole(1, million), "complete trainings, before which none ends")}},
            "a power law through the learning curve; one ends whose optimistic end is worse than the "
            "median of complete trainings"),
    }}};
}

}  // namespace finch::config
