// Pruning of trainings on several workers: the knowledge that leaders share, and the state after a restart.
#include "island/world.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <set>

namespace finch::island {
namespace {

constexpr std::size_t epochs = 27;

/// Returns a loss that falls with the epochs towards the sum of x². The speed of the fall depends on the genome.
double loss_after(const search::Individual& individual, std::size_t epoch) {
    double end = 0;
    for (const double x : individual.genome) {
        end += x * x;
    }
    return end + (10 + 5 * std::sin(7 * individual.genome[0])) / static_cast<double>(epoch);
}

World pruning_world(int workers, int islands, Budget budget, const search::PruningOptions& pruning) {
    World world(workers, islands, budget, search::ExchangeKind::pollination);
    world.epochs = epochs;
    world.loss_after = loss_after;
    world.pruning = pruning;
    return world;
}

double least_loss(const search::Individual& individual, std::size_t epoch) {
    return loss_after(individual, epoch);  // the loss falls from epoch to epoch
}

/// Checks the rungs and the losses of every individual of a run.
void check_rungs(const search::Population& population, const search::Rungs& rungs) {
    for (const auto& [id, individual] : population.individuals()) {
        std::int32_t rung = 0;
        for (std::size_t epoch = 1; epoch < epochs; ++epoch) {
            if (rungs.contains(static_cast<std::int64_t>(epoch)) && ++rung <= individual.pruning->rung) {
                CHECK(individual.pruning->losses[static_cast<std::size_t>(rung) - 1] == least_loss(individual, epoch));
            }
        }
        if (individual.outcome == search::Outcome::pruned) {
            CHECK(rungs.contains(individual.epochs));
            CHECK(rungs.passed(individual.epochs) == individual.pruning->rung);
            CHECK(individual.loss > individual.pruning->threshold);
        } else if (individual.outcome == search::Outcome::evaluated) {
            CHECK(individual.epochs == epochs);
        }
    }
}

std::size_t count(const search::Population& population, search::Outcome outcome) {
    std::size_t found = 0;
    for (const auto& [id, individual] : population.individuals()) {
        found += individual.outcome == outcome ? 1 : 0;
    }
    return found;
}

}  // namespace

TEST_CASE("halving: about one in three trainings continues, the budget is exact, and a second run is identical") {
    const auto searched = [] {
        World world = pruning_world(6, 2, evaluations(240), search::HalvingOptions{});
        CHECK(world.run(plenty));
        return world.recorded();
    };
    const search::Population population = searched();

    CHECK(population.finished() == 240);
    check_rungs(population, {1, 3});
    std::size_t at_first = 0;
    for (const auto& [id, individual] : population.individuals()) {
        at_first += individual.pruning->rung == 1 ? 1 : 0;
    }
    CHECK(at_first > 120);
    CHECK(at_first < 190);
    CHECK(count(population, search::Outcome::evaluated) > 2);
    CHECK(population.epochs() < 240 * static_cast<std::int64_t>(epochs) / 3);
    CHECK(population.best()->is_complete());
    CHECK(population == searched());
}

TEST_CASE("median and curve end some trainings early, but never all, on several workers") {
    for (const search::PruningOptions& rule :
         {search::PruningOptions{search::MedianOptions{}}, search::PruningOptions{search::CurveOptions{}}}) {
        World world = pruning_world(4, 1, evaluations(120), rule);
        CHECK(world.run(plenty));

        const search::Population population = world.recorded();
        CHECK(population.finished() == 120);
        CHECK(count(population, search::Outcome::pruned) > 20);
        CHECK(count(population, search::Outcome::evaluated) >= 5);
        if (std::holds_alternative<search::MedianOptions>(rule)) {
            check_rungs(population, {2, 2});
        }
    }
}

TEST_CASE("a leader receives the rungs of running trainings of its own island; only worker 0 receives those of all") {
    World world = pruning_world(4, 2, evaluations(8), search::HalvingOptions{});
    world.loss_after = [](const search::Individual& individual, std::size_t epoch) {
        return loss_after(individual, epoch) - 1000.0 * individual.id.worker();  // later workers have lower losses
    };
    world.slots = 1;
    CHECK_FALSE(world.run(22));

    const search::Population recorded = world.recorded();
    for (std::size_t worker = 0; worker < 4; ++worker) {
        for (const search::Individual* individual : recorded.unfinished()) {
            const search::Individual* known = world.workers_[worker]->population().find(individual->id);
            const bool is_of_island = individual->island == static_cast<int>(worker) % 2;
            CHECK((known != nullptr && known->pruning->rung > 0) == (is_of_island || worker == 0));
        }
    }
    CHECK(world.run(plenty));
}

TEST_CASE("halving: after repeated kills, a run knows the rungs of all earlier trainings and completes correctly") {
    World world = pruning_world(4, 2, evaluations(300), search::HalvingOptions{});
    std::set<search::Id> seen_unfinished;
    for (const int workers : {4, 3, 4, 2, 6, 4}) {
        CHECK_FALSE(world.run(40, workers));
        const search::Population before = world.recorded();
        for (const search::Individual* individual : before.unfinished()) {
            seen_unfinished.insert(individual->id);
        }
        check_rungs(before, {1, 3});
    }
    const search::Population before = world.recorded();
    CHECK_FALSE(world.run(1));
    for (const auto& worker : world.workers_) {
        for (const auto& [id, individual] : before.individuals()) {
            CHECK(worker->population().find(id)->pruning->rung >= individual.pruning->rung);
        }
    }

    CHECK(world.run(plenty));

    const search::Population after = world.recorded();
    CHECK(after.finished() == 300);
    CHECK(after.unfinished().empty());
    CHECK(seen_unfinished.size() >= 3);
    check_rungs(after, {1, 3});
}

TEST_CASE("budget of epochs: the run ends and saves the running trainings, and continues if the budget is raised") {
    Budget budget;
    budget.epochs = 300;
    World world = pruning_world(4, 2, budget, search::NoPruning{});
    world.propagator = search::EvolutionOptions{};

    CHECK(world.run(plenty));

    const search::Population first = world.recorded();
    CHECK(world.workers_[0]->exit_reason() == ExitReason::complete);
    CHECK(first.epochs() >= 300);
    CHECK(first.epochs() < 300 + 4 * 10);  // the workers train until they receive the stop of world rank 0
    CHECK(first.unfinished().size() > 0);
    double used = 0;
    for (const auto& [id, individual] : first.individuals()) {
        CHECK(individual.breeding.budget_used <= 1);
        used = std::max(used, individual.breeding.budget_used);
    }
    CHECK(used > 0.5);

    CHECK(world.run(plenty));  // the budget is already used
    CHECK(world.recorded().epochs() < 300 + 4 * 15);
    world.budget_.epochs = 600;
    CHECK(world.run(plenty));
    CHECK(world.recorded().epochs() >= 600);
    for (const search::Individual* individual : first.unfinished()) {
        CHECK(world.recorded().find(individual->id)->finished_training());
    }
}

TEST_CASE("evaluations without a finite loss are recorded with a problem, and count against the budget") {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double bad : {std::nan(""), infinity, -infinity}) {
        World world = pruning_world(3, 1, evaluations(60), search::HalvingOptions{1, 3});
        world.loss_after = [bad](const search::Individual& individual, std::size_t epoch) {
            return individual.genome[0] > 0 ? bad : loss_after(individual, epoch);
        };
        CHECK_FALSE(world.run(40));
        CHECK(world.run(plenty));

        const search::Population all = world.recorded();
        CHECK(all.finished() == 60);
        for (const auto& [id, individual] : all.individuals()) {
            CHECK_FALSE(search::problem_of(individual, plane()));
            CHECK(individual.ranks_by_loss() == (individual.genome[0] <= 0));
            CHECK(individual.problem.empty() == (individual.genome[0] <= 0));
        }
    }
}

}  // namespace finch::island
