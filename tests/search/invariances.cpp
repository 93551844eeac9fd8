// Changes of the search that must not change the behavior of a propagator.
#include "finch/search/propagator.hpp"

#include "simulated_search.hpp"

using namespace finch;
using namespace finch::search;

namespace {

/// Returns genes from `low` to `low` + 8 with values that are exact in binary.
Space lattice(double low) {
    Space space;
    for (const char* name : {"a", "b", "c"}) {
        space.genes.push_back({name, RealGene{low, low + 8, Scale::linear, 1.0 / 1024}});
    }
    return space;
}

/// Returns a loss like sphere(), with its minimum at `low` + 2.5 in each gene of lattice(`low`).
Loss bowl(double low, double (*transform)(double)) {
    return [=](const Genome& genome) {
        double sum = 0;
        for (const double value : genome) {
            sum += (value - low - 2.5) * (value - low - 2.5);
        }
        return transform(sum);
    };
}

double same(double loss) {
    return loss;
}
double cubed(double loss) {
    return 64 * loss * loss * loss;
}

struct Named {
    std::string name;
    PropagatorOptions options;
};

const std::vector<Named>& all() {
    static const std::vector<Named> propagators{
        {"genetic", GeneticOptions{}},   {"random", RandomSearchOptions{}},   {"evolution", EvolutionOptions{}},
        {"screened", ScreenedOptions{}}, {"auto", AutomaticOptions{}},        {"cmaes", CmaEsOptions{}},
        {"swarm", SwarmOptions{}},       {"nelder_mead", NelderMeadOptions{}}};
    return propagators;
}

}  // namespace

TEST_CASE("a shift of the genes' ranges shifts the bred genomes by the same amount, for every propagator") {
    for (const auto& [name, options] : all()) {
        CAPTURE(name);
        const Found here = search_for(options, lattice(0), bowl(0, same), 250, 3, 1, 5);
        const Found there = search_for(options, lattice(64), bowl(64, same), 250, 3, 1, 5);
        std::size_t alike = 0;
        for (std::size_t i = 0; i < here.all.size(); ++i) {
            Genome moved = there.all[i].genome;
            for (double& value : moved) {
                value -= 64;
            }
            alike += moved == here.all[i].genome ? 1 : 0;
        }
        CHECK(alike == here.all.size());
    }
}

// Differential evolution weighs successes by their gain in loss, as in its paper. The local model uses the loss values.
// The test therefore skips evolution, screened and auto.
TEST_CASE("an order-preserving transformation of the losses does not change the genomes of genetic, cmaes and others") {
    for (const auto& [name, options] : all()) {
        if (name == "evolution" || name == "screened" || name == "auto") {
            continue;
        }
        CAPTURE(name);
        const Found plain = search_for(options, lattice(0), bowl(0, same), 250, 3, 1, 5);
        const Found other = search_for(options, lattice(0), bowl(0, cubed), 250, 3, 1, 5);
        std::size_t alike = 0;
        for (std::size_t i = 0; i < plain.all.size(); ++i) {
            alike += plain.all[i].genome == other.all[i].genome ? 1 : 0;
        }
        CHECK(alike == plain.all.size());
    }
}

namespace {

/// Returns the best complete loss of a search. If `prunes` is true, trainings with a first gene below 4 are pruned. A
/// pruned training reports a thousandth of its true loss.
double best_complete(const PropagatorOptions& options, bool prunes) {
    const auto propagator = make_propagator(options, lattice(0), 1);
    Population population(ExchangeKind::none, 1);
    double best = std::numeric_limits<double>::infinity();
    constexpr std::uint32_t count = 300;
    for (std::uint32_t i = 1; i <= count; ++i) {
        RandomStream random(1, Purpose::breeding, i);
        const Stage stage{.budget_used = (i - 1.0) / count, .evaluations = count, .workers = 1, .births = i - 1};
        Offspring offspring = propagator->breed(population, 0, stage, random);
        Individual individual;
        individual.id = Id::make(0, 0, i);
        individual.genome = std::move(offspring.genome);
        individual.parents = offspring.parents;
        individual.bred_by = offspring.bred_by;
        individual.breeding = offspring.breeding;
        individual.started = i;
        individual.finished = i + 0.5;
        individual.outcome = Outcome::evaluated;
        const double x = individual.genome[0] - 6;
        const double y = individual.genome[1] - 5;
        const double z = individual.genome[2] - 1;
        individual.loss = x * x + y * y + z * z;
        if (individual.genome[0] >= 4) {
            best = std::min(best, individual.loss);
        } else if (prunes) {
            individual.outcome = Outcome::pruned;
            individual.pruning.edit().rung = 1;
            individual.pruning.edit().losses[0] = individual.loss;
            individual.loss /= 1000;
        }
        population.merge(individual);
    }
    return best;
}

}  // namespace

TEST_CASE("a pruned training with a small loss does not lead any propagator away from complete trainings") {
    for (const auto& [name, options] : all()) {
        if (name == "random") {
            continue;
        }
        CAPTURE(name);
        CHECK(best_complete(options, true) < std::max(0.3, 2 * best_complete(options, false)));
    }
}
