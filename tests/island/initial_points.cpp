#include "finch/island/initial_points.hpp"

#include "island/world.hpp"

#include <doctest/doctest.h>
#include <map>
#include <set>

namespace finch::island {
namespace {

using search::Genome;
using search::Operator;

/// Returns guesses with different values of x: 0.01, 0.02, …
search::InitialDesign guesses(int count) {
    search::InitialDesign initial_design;
    initial_design.space = plane();
    for (int i = 1; i <= count; ++i) {
        initial_design.guesses.push_back({i / 100.0, {}});
    }
    return initial_design;
}

/// Returns the number of individuals that were bred from each guess, by the number of the guess.
std::map<int, int> given(const search::Population& population) {
    std::map<int, int> counts;
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.bred_by == Operator::given) {
            ++counts[static_cast<int>(std::lround(individual.genome[0] * 100))];
        }
    }
    return counts;
}

}  // namespace

TEST_CASE("guesses: the workers take the guesses round robin for their first individuals") {
    World world(3, 1, evaluations(60), search::ExchangeKind::none);
    world.initial_design = guesses(7);

    CHECK(world.run(plenty));

    const search::Population recorded = world.recorded();
    CHECK(given(recorded) == std::map<int, int>{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}});
    for (std::uint32_t i = 0; i < 7; ++i) {
        const search::Individual* one = recorded.find(search::Id::make(0, i % 3, i / 3 + 1));
        REQUIRE(one != nullptr);
        CHECK(one->bred_by == Operator::given);
        CHECK(one->genome[0] == (i + 1) / 100.0);
    }
}

TEST_CASE("guesses: after stops and restarts on other workers, each guess is bred once and none is lost") {
    for (const int rounds : {12, 16, 20, 27, 40}) {
        World world(4, 2, evaluations(200), search::ExchangeKind::pollination);
        world.initial_design = guesses(23);
        std::size_t before = 0;
        for (const int workers : {4, 2, 5, 1, 3}) {
            world.run(rounds, workers);
            for (const auto& [guess, count] : given(world.recorded())) {
                CHECK(count == 1);
            }
            CHECK(given(world.recorded()).size() >= before);
            before = given(world.recorded()).size();
        }
        CHECK(before > 0);

        CHECK(world.run(plenty, 4));

        CHECK(given(world.recorded()).size() == 23);
        CHECK(world.recorded().finished() == 200);
        for (const auto& [guess, count] : given(world.recorded())) {
            CHECK(count == 1);
        }
    }
}

TEST_CASE("initial_points_left: returns the points that no individual of an earlier start used") {
    search::Population population(search::ExchangeKind::none, 1);
    const auto bred = [&](std::uint32_t restart, std::uint32_t worker, std::uint32_t sequence,
                          search::Operator by = search::Operator::given) {
        search::Individual one;
        one.bred_by = by;
        one.id = search::Id::make(restart, worker, sequence);
        population.merge(one);
    };
    bred(0, 0, 1);  // uses point 0 of 0 to 9
    bred(0, 2, 1);  // uses point 2
    bred(0, 2, 2);  // uses point 5
    const std::vector<EarlierStart> first{{0, 3}};
    CHECK(initial_points_left(population, first, 10) == std::vector<std::uint32_t>{1, 3, 4, 6, 7, 8, 9});

    bred(1, 1, 1);  // uses the second remaining point, 3
    bred(1, 0, 9);  // uses no point
    bred(1, 0, 1, search::Operator::repeat);
    const std::vector<EarlierStart> both{{0, 3}, {1, 2}};
    CHECK(initial_points_left(population, both, 10) == std::vector<std::uint32_t>{1, 4, 6, 7, 8, 9});
    CHECK(initial_points_left(population, both, 0).empty());
    CHECK(initial_points_left(search::Population(search::ExchangeKind::none, 1), {}, 2) ==
          std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("initial_points_left: works with the largest possible restart and worker") {
    search::Population population(search::ExchangeKind::none, 1);
    search::Individual last;
    last.id = search::Id::make(4095, 0xFFFFF, 100);
    population.merge(last);

    const std::vector<EarlierStart> earlier{{4095, 2}};
    CHECK(initial_points_left(population, earlier, 2) == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("latin: the first individuals of the workers are the points of the Latin hypercube") {
    World world(4, 2, evaluations(80), search::ExchangeKind::pollination);
    world.initial_design.space = plane();
    world.initial_design.start = search::Start::latin;
    world.initial_design.points = 8;

    CHECK(world.run(plenty));

    std::set<int> shares;
    const search::Population recorded = world.recorded();
    for (std::uint32_t k = 0; k < 8; ++k) {
        const search::Individual* one = recorded.find(search::Id::make(0, k % 4, k / 4 + 1));
        REQUIRE(one != nullptr);
        CHECK(one->bred_by == Operator::random);
        shares.insert(static_cast<int>((one->genome[0] + 5) / 10 * 8));
    }
    CHECK(shares.size() == 8);
}

TEST_CASE("constraints: all trained genomes are canonical and obey the constraints") {
    search::Space space;
    space.genes = {
        {"x", search::RealGene{-5, 5}}, {"n", search::IntGene{0, 1}}, {"y", search::RealGene{1, 5}, {{1, {1}}}}};
    World world(3, 1, evaluations(150), search::ExchangeKind::none);
    world.set_space(space);
    world.initial_design.space = space;
    world.initial_design.constraints.emplace_back("x <= -4.9 or x > 4.95", space);
    world.initial_design.start = search::Start::sobol;
    world.initial_design.points = 16;

    CHECK(world.run(plenty));

    const search::Population recorded = world.recorded();
    CHECK(recorded.finished() == 150);
    for (const auto& [id, individual] : recorded.individuals()) {
        CHECK(individual.outcome == search::Outcome::evaluated);
        CHECK((individual.genome[0] <= -4.9 || individual.genome[0] > 4.95));
        CHECK(individual.genome == search::canonical(space, individual.genome));
    }
}

TEST_CASE("screened and auto: first points that cannot be trained are drawn again and cost no evaluation") {
    for (const search::PropagatorOptions& propagator : {search::PropagatorOptions{search::ScreenedOptions{}},
                                                        search::PropagatorOptions{search::AutomaticOptions{}}}) {
        World world(3, 1, evaluations(60), search::ExchangeKind::none);
        world.propagator = propagator;
        world.set_space(plane());
        world.initial_design.space = plane();
        world.initial_design.constraints.emplace_back("x <= 0", plane());
        world.exists = [](const search::Genome& genome) { return genome[1] > 0; };

        CHECK(world.run(plenty));

        const search::Population recorded = world.recorded();
        CHECK(recorded.finished() == 60);
        for (const auto& [id, individual] : recorded.individuals()) {
            CHECK(individual.outcome == search::Outcome::evaluated);
            CHECK((individual.genome[0] <= 0 && individual.genome[1] > 0));
        }
    }
}

TEST_CASE("constraints: if no genome obeys the constraints, the individual fails with a message") {
    World world(1, 1, evaluations(2), search::ExchangeKind::none);
    world.initial_design.space = plane();
    world.initial_design.constraints.emplace_back("x > 5", plane());

    CHECK(world.run(plenty));

    const search::Individual failed = world.recorded().individuals().begin()->second;
    CHECK(failed.outcome == search::Outcome::failed);
    CHECK(failed.problem == "no genome that obeys search.constraints in 10000 breedings");
}

}  // namespace finch::island
