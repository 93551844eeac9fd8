// The options for a genome that another individual already has: breed, train and reuse.
#include "island/world.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <set>

namespace finch::island {

namespace {

search::Space small_space() {
    search::Space space;
    space.genes = {{"word", search::ChoiceGene{{"a", "b", "c"}}}, {"n", search::IntGene{0, 3}}};
    return space;
}

void look_for_duplicates(World& world, search::Duplicates duplicates) {
    world.set_space(small_space());
    world.initial_design.space = small_space();
    world.duplicates = duplicates;
}

struct Counts {
    std::size_t evaluations = 0;
    std::size_t reused = 0;
    std::set<search::Genome> genomes;         ///< the evaluated genomes
    std::size_t repeats_before_the_last = 0;  ///< number of repeated evaluations before the last new genome was born
};

Counts counts_of(const search::Population& population) {
    std::vector<const search::Individual*> all;
    for (const auto& [id, individual] : population.individuals()) {
        all.push_back(&individual);
    }
    std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->born < b->born; });
    Counts counts;
    std::size_t repeats = 0;
    for (const search::Individual* one : all) {
        if (one->is_reused()) {
            ++counts.reused;
            continue;
        }
        ++counts.evaluations;
        if (counts.genomes.insert(one->genome).second) {
            counts.repeats_before_the_last = repeats;
        } else {
            ++repeats;
        }
    }
    return counts;
}

}  // namespace

TEST_CASE("breed: a small space is searched without unnecessary repeats, and the search uses its budget") {
    for (const int workers : {1, 4}) {
        World world(workers, 1, evaluations(40), search::ExchangeKind::none, 0);
        look_for_duplicates(world, search::Duplicates::breed);

        CHECK(world.run(plenty));

        const Counts counts = counts_of(world.recorded());
        CHECK(counts.evaluations == 40);
        CHECK(counts.reused == 0);
        CHECK(counts.genomes.size() == 12);
        // Workers that start at the same time do not know of each other's individuals.
        CHECK(counts.repeats_before_the_last <= (workers == 1 ? 0 : 2));
    }
}

TEST_CASE("train: a known genome is trained again") {
    World world(1, 1, evaluations(40), search::ExchangeKind::none);
    look_for_duplicates(world, search::Duplicates::train);

    CHECK(world.run(plenty));

    const Counts counts = counts_of(world.recorded());
    CHECK(counts.evaluations == 40);
    CHECK(counts.repeats_before_the_last > 0);
}

TEST_CASE("reuse: a known result needs no lease, and after 99 reused results the worker trains again") {
    for (const int workers : {1, 3}) {
        World world(workers, 1, evaluations(20), search::ExchangeKind::none, 0);
        look_for_duplicates(world, search::Duplicates::reuse);

        CHECK(world.run(plenty));

        const search::Population recorded = world.recorded();
        const Counts counts = counts_of(recorded);
        CHECK(counts.evaluations == 20);
        CHECK(counts.genomes.size() == 12);
        CHECK(counts.repeats_before_the_last == 0);
        CHECK(counts.reused >= (workers == 1 ? 99 * 8 : 99 * 8 / 2));  // the worker trains a known genome eight times
        CHECK(counts.reused <= 99 * 20);
        CHECK(world.workers_[0]->population().evaluations() == 20);
        for (const auto& [id, individual] : recorded.individuals()) {
            if (individual.is_reused()) {
                const search::Individual* trained = recorded.find(individual.reused_from);
                REQUIRE(trained != nullptr);
                CHECK_FALSE(trained->is_reused());
                CHECK(trained->genome == individual.genome);
                CHECK(trained->loss == individual.loss);
                CHECK(individual.started == 0);
            }
        }
        std::size_t started = 0;
        for (const auto& evaluator : world.evaluators_) {
            started += evaluator->started.size();
        }
        CHECK(started == 20);
    }
}

TEST_CASE("reuse: after kills and resumes, the budget is exact, and reused results do not count") {
    for (const int generations : {0, 10}) {
        Budget budget = evaluations(30);
        if (generations > 0) {
            budget = {};
            budget.generations = generations;
        }
        World world(3, 1, budget, search::ExchangeKind::none);
        look_for_duplicates(world, search::Duplicates::reuse);
        for (const int rounds : {20, 35, 60}) {
            world.run(rounds);
        }

        CHECK(world.run(plenty));

        const Counts counts = counts_of(world.recorded());
        CHECK(counts.evaluations == 30);
        CHECK(counts.reused > 0);
        CHECK(counts.genomes.size() == 12);
        CHECK(world.workers_[0]->population() == world.recorded());
    }
}

TEST_CASE("other_results: results of another run are reused without a lease, and remain if that run is gone") {
    constexpr std::uint64_t other_run = 42;
    for (const search::Duplicates duplicates :
         {search::Duplicates::breed, search::Duplicates::reuse, search::Duplicates::train}) {
        for (const int workers : {1, 3}) {
            search::OtherResults others;
            for (int n = 0; n < 4; ++n) {  // all genomes with the word a
                search::Individual one;
                one.id = search::Id::make(0, 0, static_cast<std::uint32_t>(n) + 1);
                one.outcome = n == 3 ? search::Outcome::diverged : search::Outcome::evaluated;
                one.loss = n == 3 ? search::Individual::not_measured : n;
                others.add({0, static_cast<double>(n)}, one, other_run);
            }
            World world(workers, 1, evaluations(30), search::ExchangeKind::none, 0);
            look_for_duplicates(world, duplicates);
            world.other_results = &others;
            world.run(60);
            const search::Population before = world.recorded();
            world.other_results = nullptr;

            CHECK(world.run(plenty));

            const search::Population recorded = world.recorded();
            CHECK(recorded.evaluations() == 30);
            std::map<search::Genome, int> taken_over;
            std::set<search::Genome> trained;
            for (const auto& [id, individual] : recorded.individuals()) {
                if (!individual.is_reused()) {
                    trained.insert(individual.genome);
                } else if (individual.is_of_another_run()) {
                    ++taken_over[individual.genome];
                    CHECK(individual.reused_run == other_run);
                    CHECK(individual.genome == search::Genome{0, individual.reused_from.sequence() - 1.0});
                    CHECK(individual.started == 0);
                }
                if (individual.is_of_another_run() && individual.outcome == search::Outcome::evaluated) {
                    CHECK(individual.loss == individual.reused_from.sequence() - 1.0);
                }
            }
            for (const auto& [id, individual] : before.individuals()) {
                if (individual.is_of_another_run()) {
                    CHECK(identical(individual, *recorded.find(id)));
                }
            }
            CHECK(!taken_over.empty());
            for (const auto& [genome, count] : taken_over) {
                // Workers that breed a genome at the same time do not know of each other's individuals.
                CHECK((duplicates == search::Duplicates::reuse || count <= workers));
            }
            if (duplicates == search::Duplicates::breed) {
                CHECK(trained.size() + taken_over.size() >= 12);
            }
        }
    }
}

TEST_CASE("other_results: a worker reuses one result per round of its loop, and handles messages in between") {
    World world(2, 1, evaluations(10), search::ExchangeKind::none, 0);
    search::Space space;
    space.genes = {{"n", search::IntGene{0, 19999}}};
    world.set_space(space);
    world.initial_design.space = space;
    search::OtherResults others;
    for (std::uint32_t n = 0; n < 20000; ++n) {
        search::Individual one;
        one.id = search::Id::make(0, 0, n + 1);
        one.outcome = search::Outcome::evaluated;
        one.loss = n;
        others.add({static_cast<double>(n)}, one, 42);
    }
    world.propagator = search::RandomSearchOptions{};
    world.other_results = &others;
    constexpr int rounds = 20;

    CHECK_FALSE(world.run(rounds));

    CHECK(world.recorded().size() > 0);
    CHECK(world.recorded().size() <= 2 * rounds);  // at most one result per worker and round
}

TEST_CASE("Started records go to the leaders of the island only if genomes can repeat, otherwise only to rank 0") {
    constexpr std::size_t started = 0;  // index of search::Started in the variant Record
    World small(4, 2, evaluations(40), search::ExchangeKind::pollination);
    look_for_duplicates(small, search::Duplicates::breed);
    World wide(4, 2, evaluations(40), search::ExchangeKind::pollination);
    wide.initial_design.space = plane();

    CHECK(small.run(plenty));
    CHECK(wide.run(plenty));

    // World rank 0 receives every start. In the small space, the other leader of the island receives it too.
    const auto to_zero_alone = [](const World& world) {
        std::size_t count = 0;
        const search::Population all = world.recorded();
        for (const auto& [id, individual] : all.individuals()) {
            count += id.worker() != 0 ? 1 : 0;
        }
        return count;
    };
    CHECK(wide.messages_to_others(started) == to_zero_alone(wide));
    CHECK(small.messages_to_others(started) > to_zero_alone(small));
}

TEST_CASE("breed: a genome in training on another worker of the island is rarely trained a second time") {
    std::size_t different = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        World world(2, 1, evaluations(12), search::ExchangeKind::none, 0);
        world.seed = seed;
        world.looks = {1000, 1000};
        world.slots = 6;
        look_for_duplicates(world, search::Duplicates::breed);

        CHECK(world.run(plenty));

        different += counts_of(world.recorded()).genomes.size();
    }

    // Twelve individuals are in training at the same time in a space of twelve genomes, and no result is known. Two
    // workers without knowledge of each other would train 20 × 12 × (1 − (1/2)²) = 180 different genomes.
    CHECK(different >= 210);
}

TEST_CASE("breed: equal guesses are trained once") {
    World world(1, 1, evaluations(6), search::ExchangeKind::none);
    look_for_duplicates(world, search::Duplicates::breed);
    world.initial_design.guesses = {{0, 1}, {0, 1}, {0, 1}, {2, {}}};

    CHECK(world.run(plenty));

    const search::Population recorded = world.recorded();
    CHECK(counts_of(recorded).genomes.size() == 6);
    std::size_t given = 0;
    for (const auto& [id, individual] : recorded.individuals()) {
        given += individual.bred_by == search::Operator::given ? 1 : 0;
    }
    CHECK(given == 2);
}

}  // namespace finch::island
