// The final choice: the last evaluations of a budget repeat the best individuals.
#include "finch/search/final_choice.hpp"

#include "finch/island/worker.hpp"

#include "island/world.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace finch::island {
namespace {

/// Returns the number of repeats of each repeated individual.
std::map<search::Id, int> repeats_of(const search::Population& population) {
    std::map<search::Id, int> repeats;
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.is_repeat()) {
            ++repeats[individual.parents[0]];
            const search::Individual* original = population.find(individual.parents[0]);
            REQUIRE(original != nullptr);
            CHECK(individual.genome == original->genome);
            CHECK_FALSE(original->is_repeat());
        }
    }
    return repeats;
}

/// Checks that each of the best `candidates` individuals is repeated `repeats` times, and no other individual.
void check_repeats(const search::Population& population, const search::FinalChoice& choice) {
    const auto repeats = repeats_of(population);
    CHECK(std::ssize(repeats) == choice.candidates);
    for (const search::Candidate& one : search::final_candidates(population, choice)) {
        REQUIRE(repeats.contains(one.individual->id));
        CHECK(repeats.at(one.individual->id) == choice.repeats);
    }
}

std::size_t bred_of(const search::Population& population) {
    return population.size() -
           static_cast<std::size_t>(std::count_if(population.individuals().begin(), population.individuals().end(),
                                                  [](const auto& one) { return one.second.is_repeat(); }));
}

}  // namespace

TEST_CASE("final choice: the best individuals are repeated after all other evaluations, within the budget") {
    for (const auto kind :
         {search::ExchangeKind::none, search::ExchangeKind::migration, search::ExchangeKind::pollination}) {
        World world(4, 2, evaluations(60), kind);
        world.final_choice = {4, 3, plane()};
        world.noise = 0.01;
        bool over = world.run(1);
        while (!over && repeats_of(world.recorded()).empty()) {
            over = world.go_on(1);
        }
        const search::Population at_first_repeat = world.recorded();
        CHECK(bred_of(at_first_repeat) == 48);
        CHECK(at_first_repeat.finished() >= 48);

        CHECK(world.go_on(plenty));

        const search::Population recorded = world.recorded();
        CHECK(recorded.finished() == 60);
        CHECK(recorded.size() == 60);
        check_repeats(recorded, *world.final_choice);
        CHECK(recorded.memberships() == at_first_repeat.memberships());
        CHECK(recorded.homes() == at_first_repeat.homes());
        CHECK(search::chosen(recorded, world.final_choice)->is_repeat());
        for (const auto& worker : world.workers_) {
            CHECK(worker->exit_reason() == ExitReason::complete);
        }
    }
}

TEST_CASE("final choice: after kills and restarts on other workers, each candidate has exactly its number of repeats") {
    for (const int slots : {1, 3}) {
        for (int rounds = 1; rounds < 60; rounds += 2) {
            World world(3, 2, evaluations(40), search::ExchangeKind::pollination);
            world.final_choice = {3, 4, plane()};
            world.noise = 0.01;
            world.slots = slots;
            CHECK_FALSE(world.run(20));
            const std::vector<int> layouts{4, 2, 3, 5, 2, 3, 4, 2};
            for (const int workers : layouts) {
                world.run(rounds, workers);
            }
            CHECK(world.run(plenty, 3));

            const search::Population recorded = world.recorded();
            CHECK(recorded.finished() == 40);
            CHECK(recorded.size() == 40);
            check_repeats(recorded, *world.final_choice);
        }
    }
}

TEST_CASE("final choice: an orderly stop saves running repeats, and the next start completes the repeats") {
    std::size_t saved = 0;
    for (int rounds = 0; rounds < 40; rounds += 3) {
        World world(4, 2, evaluations(40), search::ExchangeKind::migration);
        world.final_choice = {4, 4};
        world.run(1);
        while (repeats_of(world.recorded()).empty()) {
            REQUIRE_FALSE(world.go_on(1));
        }
        world.go_on(rounds);
        world.stop = StopRequest::orderly;
        CHECK(world.go_on(plenty));
        world.stop = StopRequest::none;
        saved += world.recorded().unfinished().size();

        CHECK(world.run(plenty, 3));

        CHECK(world.recorded().finished() == 40);
        check_repeats(world.recorded(), *world.final_choice);
    }
    CHECK(saved > 0);
}

TEST_CASE("final choice: after the budget is raised, the last evaluations are repeats again, and old repeats count") {
    World world(4, 2, evaluations(40), search::ExchangeKind::pollination);
    world.final_choice = {4, 3, plane()};
    world.noise = 0.01;
    CHECK(world.run(plenty));
    for (const int budget : {41, 45, 100, 200}) {
        const std::size_t bred_before = bred_of(world.recorded());
        const std::size_t more = static_cast<std::size_t>(budget) - world.recorded().size();
        world.budget_ = evaluations(budget);
        CHECK(world.run(plenty, 3));

        const search::Population recorded = world.recorded();
        CHECK(recorded.finished() == static_cast<std::size_t>(budget));
        CHECK(bred_of(recorded) == bred_before + (more > 12 ? more - 12 : 0));
        for (const search::Candidate& one : search::final_candidates(recorded, *world.final_choice)) {
            CHECK(one.finished >= 3);
        }
        CHECK(search::winner_of(search::final_candidates(recorded, *world.final_choice), *world.final_choice) !=
              nullptr);
    }
}

TEST_CASE("final choice: if the budget is raised during the repeats, the search continues, and new repeats follow") {
    World world(3, 1, evaluations(30), search::ExchangeKind::none);
    world.final_choice = {2, 5};
    world.run(1);
    while (repeats_of(world.recorded()).empty()) {
        REQUIRE_FALSE(world.go_on(1));
    }
    world.budget_ = evaluations(50);

    CHECK(world.run(plenty, 4));

    const search::Population recorded = world.recorded();
    CHECK(recorded.finished() == 50);
    CHECK(bred_of(recorded) > 20);
    for (const search::Candidate& one : search::final_candidates(recorded, *world.final_choice)) {
        CHECK(one.finished >= 5);
    }
}

TEST_CASE("final choice: a later start without it finishes the started repeats and starts no new repeats") {
    World world(3, 1, evaluations(30), search::ExchangeKind::none);
    world.final_choice = {2, 5};
    world.run(1);
    while (repeats_of(world.recorded()).empty()) {
        REQUIRE_FALSE(world.go_on(1));
    }
    const std::size_t known = world.recorded().size() - bred_of(world.recorded());
    world.final_choice.reset();

    CHECK(world.run(plenty));

    CHECK(world.recorded().finished() == 30);
    CHECK(bred_of(world.recorded()) == 30 - known);
}

TEST_CASE("final choice: if there are few genomes, each is repeated more often; without losses, there are no repeats") {
    World few(3, 1, evaluations(50), search::ExchangeKind::none);
    search::Space space;
    space.genes = {{"x", search::IntGene{0, 1}}};
    few.set_space(space);
    few.propagator = search::RandomSearchOptions{};
    few.final_choice = {8, 3};
    CHECK(few.run(plenty));
    World none(3, 1, evaluations(50), search::ExchangeKind::none);
    none.exists = [](const search::Genome&) { return false; };
    none.final_choice = {8, 3};
    CHECK(none.run(plenty));

    CHECK(few.recorded().finished() == 50);
    const auto repeats = repeats_of(few.recorded());
    CHECK(repeats.size() == 2);
    for (const auto& [id, count] : repeats) {
        CHECK(count == 12);
    }
    CHECK(none.recorded().finished() == 50);
    CHECK(repeats_of(none.recorded()).empty());
}

TEST_CASE("final choice: a search of 100 evaluations breeds the same individuals with and without 12 repeats") {
    std::vector<std::vector<std::pair<search::Genome, double>>> bred;
    for (const bool chooses : {true, false}) {
        World world(2, 1, evaluations(chooses ? 112 : 100), search::ExchangeKind::none);
        world.final_choice = chooses ? std::optional(search::FinalChoice{4, 3}) : std::nullopt;
        world.propagator = search::EvolutionOptions{};
        CHECK(world.run(plenty));
        auto& genomes = bred.emplace_back();
        const search::Population recorded = world.recorded();
        for (const auto& [id, individual] : recorded.individuals()) {
            if (!individual.is_repeat()) {
                genomes.emplace_back(individual.genome, individual.breeding.budget_used);
            }
        }
    }

    CHECK(bred[0].size() == 100);
    CHECK(bred[0] == bred[1]);
}

}  // namespace finch::island
