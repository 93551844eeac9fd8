// Propagators that derive their state from results: the bred genomes, the recorded data, the results on test functions.
#include "search/propagators/evolution.hpp"

#include "finch/search/function.hpp"
#include "finch/search/propagator.hpp"

#include "simulated_search.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <vector>

using namespace finch;
using namespace finch::search;

namespace {

Found search_function(const PropagatorOptions& options, const std::string& name, std::int64_t evaluations,
                      std::int32_t in_flight, std::uint64_t seed) {
    const Function& function = find_function(name);
    return search_for(
        options, function_space(function, function.default_dimensions),
        [&](const Genome& genome) { return function.value(genome); }, evaluations, in_flight, seed);
}

}  // namespace

// tools/bench/search.cpp reports the median losses of these functions for 8 seeds: 7e-12, 0 and 4e-7.
TEST_CASE("evolution finds the optimum among thousands of local optima, and despite a funnel that leads away from it") {
    CHECK(search_function(EvolutionOptions{}, "rastrigin", 38'912, 152, 1).best < 0.01);
    CHECK(search_function(EvolutionOptions{}, "griewank", 38'912, 152, 1).best < 0.01);
    CHECK(search_function(EvolutionOptions{}, "birastrigin", 38'912, 152, 1).best < 1);
}

// The same script with 2 000 workers. Without the additive model, the medians are 0.25, 74 and 89.
TEST_CASE("evolution with thousands of workers needs few generations") {
    CHECK(search_function(EvolutionOptions{}, "griewank", 38'912, 2000, 1).best < 0.01);
    CHECK(search_function(EvolutionOptions{}, "schwefel", 38'912, 2000, 1).best < 1);
    CHECK(search_function(EvolutionOptions{}, "birastrigin", 38'912, 2000, 1).best < 30);
}

TEST_CASE("evolution: the additive model breeds if it takes less than a quarter of an evaluation's time") {
    for (const auto& [seconds, most] : {std::pair{1.0, 0.5}, std::pair{1e-4, 0.0}}) {
        CAPTURE(seconds);
        const Found found = search_for(EvolutionOptions{}, reals(4), sphere, 3000, 100, 1, seconds);
        const auto bred =
            static_cast<double>(std::count_if(found.all.begin(), found.all.end(), [](const Individual& one) {
                return one.bred_by == Operator::additive_model;
            }));
        CHECK(bred / 3000 <= most);
        CHECK(bred / 3000 >= 0.7 * most);
    }
}

TEST_CASE("evolution records the breeding data that its state needs later") {
    const Found found = search_function(EvolutionOptions{}, "sphere", 12'000, 8, 2);
    std::map<Operator, int> bred;
    double used = 0;
    std::set<std::int32_t> phases;
    for (const Individual& individual : found.all) {
        const Breeding& breeding = individual.breeding;
        ++bred[individual.bred_by];
        phases.insert(breeding.phase);
        CHECK(breeding.budget_used >= used);
        used = breeding.budget_used;
        if (individual.bred_by == Operator::differential_evolution) {
            CHECK((breeding.slot >= 0 && breeding.scale_factor > 0 && breeding.scale_factor <= 1));
            CHECK((breeding.crossover_rate >= 0 && breeding.crossover_rate <= 1));
        } else if (individual.bred_by == Operator::cma_es) {
            CHECK(breeding.slot >= 0);
        }
    }
    CHECK(phases == std::set<std::int32_t>{0, 1});
    CHECK(std::abs(bred[Operator::cma_es] / 12'000.0 - 0.15) < 0.02);
    CHECK(bred[Operator::random] >= 40);
    CHECK(bred[Operator::random] < 200);
}

TEST_CASE("the recorded parents of a child were finished before its birth, and contributed genes to the child") {
    const Space space = mixed_space();
    for (const PropagatorOptions& options :
         {PropagatorOptions{EvolutionOptions{}}, PropagatorOptions{ScreenedOptions{}},
          PropagatorOptions{AutomaticOptions{}}}) {
        CAPTURE(options.index());
        const Found found = search_for(options, space, mixed_loss, options.index() == 3 ? 150 : 800, 4, 1, 5);
        std::map<Id, const Individual*> ended;
        std::map<Operator, std::array<int, 3>> counts;  // children, genes, genes that equal a parent's gene
        for (const Individual& child : found.all) {
            std::vector<const Individual*> parents;
            CHECK((child.parents[0] != Id{} || child.parents[1] == Id{}));
            for (const Id id : child.parents) {
                if (id != Id{}) {
                    REQUIRE(ended.contains(id));
                    CHECK(ended[id]->finished < child.finished);
                    parents.push_back(ended[id]);
                }
            }
            const bool is_child =
                child.bred_by == Operator::crossover || child.bred_by == Operator::differential_evolution;
            CHECK(
                (parents.empty() ? !is_child : child.bred_by != Operator::random && child.bred_by != Operator::cma_es));
            for (std::size_t i = 0; i < space.size() && !parents.empty(); ++i) {
                ++counts[child.bred_by][1];
                counts[child.bred_by][2] += std::any_of(parents.begin(), parents.end(), [&](const Individual* parent) {
                    return parent->genome[i] == child.genome[i];
                });
            }
            counts[child.bred_by][0] += parents.empty() ? 0 : 1;
            ended[child.id] = &child;
        }
        for (const auto& [bred_by, count] : counts) {
            CAPTURE(words_of(Operator())[static_cast<std::size_t>(bred_by)]);
            const bool has_parents = count[0] > 0;
            const bool changes_most =
                bred_by == Operator::differential_evolution || bred_by == Operator::additive_model;
            // A child shares less than a third of its genes with an unrelated individual.
            CHECK((!has_parents || changes_most || 2 * count[2] > count[1]));
            CHECK((has_parents || bred_by == Operator::random || bred_by == Operator::cma_es));
        }
    }
}

TEST_CASE("auto: screened for the first 1000 results, then evolution; if evaluations are cheap, evolution earlier") {
    const auto operators = [](std::int64_t evaluations, double seconds) {
        std::vector<Operator> bred;
        for (const Individual& one :
             search_for(AutomaticOptions{}, mixed_space(), mixed_loss, evaluations, 4, 1, seconds).all) {
            bred.push_back(one.bred_by);
        }
        return bred;
    };
    const std::vector<Operator> costly = operators(1200, 5);
    CHECK(std::count(costly.begin(), costly.begin() + 1000, Operator::model_screened) > 900);
    CHECK(std::count(costly.begin() + 1010, costly.end(), Operator::model_screened) == 0);
    CHECK(std::count(costly.begin() + 1010, costly.end(), Operator::differential_evolution) > 50);
    CHECK(std::count(costly.begin(), costly.end(), Operator::additive_model) < 20);
    const std::vector<Operator> free = operators(300, 1e-6);
    CHECK(std::count(free.begin() + 40, free.end(), Operator::model_screened) == 0);
    // Four times the cost of the model for 100 results and 4 individuals in training, from AutomaticOptions.
    const double seconds =
        4 * AutomaticOptions{}.model_seconds * std::pow(104, 2) * (1 + static_cast<double>(mixed_space().size()) / 40);
    const std::vector<Operator> cheap = operators(300, seconds);
    CHECK(std::count(cheap.begin(), cheap.begin() + 95, Operator::model_screened) > 60);
    CHECK(std::count(cheap.begin() + 105, cheap.end(), Operator::model_screened) == 0);
}

TEST_CASE("evolution: the share of members from a model's best results equals the model's share of the budget") {
    for (const auto& [evaluations, heirs] : {std::pair<std::int64_t, int>{9000, 1}, {400, 3}, {120, 10}}) {
        CAPTURE(evaluations);
        EvolutionState state({.space = reals(2),
                              .seed = 1,
                              .options = {.cma_share = 0, .mutation_share = 0},
                              .evaluations = evaluations});
        std::uint32_t number = 0;
        std::map<Id, double> losses_of_model;
        const auto take = [&](Operator bred_by, double loss) {
            RandomStream random(++number, Purpose::test);
            Individual individual;
            individual.id = Id::make(0, 0, number);
            individual.genome = random_genome(reals(2), random);
            individual.bred_by = bred_by;
            individual.outcome = Outcome::evaluated;
            individual.loss = loss;
            state.take(individual, true);
            if (bred_by == Operator::model_screened) {
                losses_of_model[individual.id] = loss;
            }
        };
        for (int i = 0; i < 60; ++i) {
            take(i % 3 == 0 ? Operator::random : Operator::model_screened, std::abs(i - 40.1));
        }
        for (int i = 0; i < 20; ++i) {
            take(Operator::model_screened, 200 + i);
            take(Operator::random, 100 + i);
        }
        std::set<Id> members;
        for (std::uint64_t i = 0; i < 3000; ++i) {
            RandomStream random(i, Purpose::breeding);
            members.insert(state.breed({.evaluations = evaluations, .births = 500}, random).parents[0]);
        }
        std::vector<double> found;
        std::vector<double> best;
        for (const auto& [id, loss] : losses_of_model) {
            best.push_back(loss);
            if (members.contains(id)) {
                found.push_back(loss);
            }
        }
        std::sort(best.begin(), best.end());
        std::sort(found.begin(), found.end());
        best.resize(static_cast<std::size_t>(heirs));
        CHECK(members.size() == 20);
        CHECK(found == best);
    }
}

TEST_CASE("evolution: if a model bred more than its island's budget, all members can be the model's results") {
    EvolutionState state(
        {.space = reals(2), .seed = 1, .options = {.cma_share = 0, .mutation_share = 0}, .evaluations = 30});
    for (std::uint32_t number = 1; number <= 100; ++number) {
        RandomStream random(number, Purpose::test);
        Individual individual;
        individual.id = Id::make(0, 0, number);
        individual.genome = random_genome(reals(2), random);
        individual.bred_by = Operator::model_screened;
        individual.outcome = Outcome::evaluated;
        individual.loss = 1000.0 - number;  // each result is the best so far
        state.take(individual, true);
    }
    std::set<Id> members;
    for (std::uint64_t i = 0; i < 3000; ++i) {
        RandomStream random(i, Purpose::breeding);
        members.insert(state.breed({.evaluations = 30, .births = 500}, random).parents[0]);
    }
    std::set<Id> best;
    for (std::uint32_t number = 81; number <= 100; ++number) {
        best.insert(Id::make(0, 0, number));
    }
    CHECK(members == best);
}

TEST_CASE("evolution and screened continue to breed if all individuals fail") {
    for (const PropagatorOptions& options :
         {PropagatorOptions{EvolutionOptions{}}, PropagatorOptions{ScreenedOptions{}}}) {
        const auto propagator = make_propagator(options, mixed_space(), 1);
        Population population(ExchangeKind::none, 1);
        for (std::uint32_t i = 1; i <= 200; ++i) {
            RandomStream random(1, Purpose::breeding, i);
            const Stage stage{.budget_used = i / 200.0, .evaluations = 200, .workers = 1, .births = i};
            const Offspring offspring = propagator->breed(population, 0, stage, random);
            Individual individual;
            individual.id = Id::make(0, 0, i);
            individual.genome = offspring.genome;
            individual.bred_by = offspring.bred_by;
            individual.breeding = offspring.breeding;
            individual.outcome = Outcome::failed;
            individual.finished = i;
            population.merge(individual);
        }
        CHECK(population.finished() == 200);
    }
}

TEST_CASE("conditions, fixed genes and steps: children are canonical and the search finds the optimum") {
    Space space{{{"optimizer", ChoiceGene{{"sgd", "adam"}}},
                 {"momentum", RealGene{0, 1}, {{.gene = 0, .values = {0}}}},
                 {"decay", RealGene{1e-6, 1e-1, Scale::log}, {{.gene = 0, .values = {1}}}},
                 {"width", IntGene{8, 512, Scale::log}},
                 {"rate", RealGene{0, 0.5, Scale::linear, 0.1}},
                 {"fixed", IntGene{3, 3}},
                 {"size", ChoiceGene{{"s", "m", "l"}, true}}}};
    const auto loss = [](const Genome& g) {
        const double own = g[0] == 0 ? std::abs(g[1] - 0.9) : 0.3 + std::abs(std::log10(g[2]) + 3);
        return own + std::abs(std::log2(g[3]) - 6) + std::abs(g[4] - 0.2) + std::abs(g[6] - 1);
    };
    for (const PropagatorOptions& options :
         {PropagatorOptions{EvolutionOptions{}}, PropagatorOptions{ScreenedOptions{}}}) {
        CAPTURE(options.index());
        const std::int64_t evaluations = options.index() == 2 ? 3000 : 150;
        const Found found = search_for(options, space, loss, evaluations, 4, 1);
        std::set<double> momenta;
        for (const Individual& individual : found.all) {
            CHECK(individual.genome == canonical(space, individual.genome));
            CHECK(individual.genome[5] == 3);
            momenta.insert(individual.genome[1]);
        }
        CHECK(momenta.size() > 20);  // drawn again when the gene becomes active
        CHECK(found.best < 0.25);
    }
}

TEST_CASE("a space with fixed genes only can be searched with every propagator") {
    const Space space{{{"a", IntGene{2, 2}}, {"b", ChoiceGene{{"x"}}}}};
    for (const PropagatorOptions& options :
         {PropagatorOptions{EvolutionOptions{}}, PropagatorOptions{ScreenedOptions{}},
          PropagatorOptions{AutomaticOptions{}}}) {
        CHECK(search_for(
                  options, space, [](const Genome&) { return 1.0; }, 30, 2, 1)
                  .all.size() == 30);
    }
}
