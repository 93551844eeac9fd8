// Failed evaluations are retried, with a new id and a new lease.
#include "island/world.hpp"

#include <doctest/doctest.h>
#include <map>
#include <set>

namespace finch::island {

namespace {

using search::Id;
using search::Individual;
using search::Outcome;

/// Returns the number of retries per failed individual.
std::map<Id, int> retries_of(const search::Population& population) {
    std::map<Id, int> counts;
    for (const auto& [id, individual] : population.individuals()) {
        ++counts[individual.retry_of];
    }
    counts.erase(Id{});
    return counts;
}

int tries_before(const search::Population& population, const Individual& individual) {
    return individual.retry_of == Id{} ? 0 : 1 + tries_before(population, *population.find(individual.retry_of));
}

/// Checks that each retry has the genes of a failed individual, that no individual is retried twice, and that no chain
/// of retries is longer than `most`.
void check_retries(const search::Population& population, int most) {
    for (const auto& [id, count] : retries_of(population)) {
        REQUIRE(population.find(id) != nullptr);
        CHECK(population.find(id)->outcome == Outcome::failed);
        CHECK(count == 1);
    }
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.retry_of != Id{}) {
            const Individual& failed = *population.find(individual.retry_of);
            CHECK(individual.genome == failed.genome);
            CHECK(individual.parents == failed.parents);
            CHECK(individual.island == failed.island);
        }
        CHECK(tries_before(population, individual) <= most);
    }
}

/// Returns the number of failed individuals that could be retried and were not.
int left_over(const search::Population& population, int most) {
    const auto tried = retries_of(population);
    int left = 0;
    for (const auto& [id, individual] : population.individuals()) {
        const bool failed = individual.outcome == Outcome::failed;
        left += failed && !tried.contains(id) && tries_before(population, individual) < most ? 1 : 0;
    }
    return left;
}

bool is_on_the_right(const Individual& individual) {
    return individual.genome[0] > 0;
}

}  // namespace

TEST_CASE("retries: failed evaluations are retried up to the limit and within the budget, successful ones are not") {
    for (const bool fails_always : {true, false}) {
        World world(3, 1, evaluations(90), search::ExchangeKind::pollination);
        world.retries = 2;
        world.fails = [fails_always](const Individual& one) {
            return is_on_the_right(one) && (fails_always || one.retry_of == Id{});
        };
        REQUIRE(world.run(100000));
        const search::Population population = world.recorded();
        CHECK(population.evaluations() == 90);
        check_retries(population, fails_always ? 2 : 1);
        CHECK(retries_of(population).size() > 10);
        CHECK(left_over(population, 2) <= 3);  // one per worker at the end of the budget
    }
}

TEST_CASE("retries: records that name each other as predecessors are not retried") {
    search::Population population(search::ExchangeKind::none, 1);
    for (const auto& [number, before] : {std::pair{1U, 2U}, {2U, 1U}, {3U, 1U}}) {
        Individual one;
        one.id = Id::make(0, 0, number);
        one.outcome = Outcome::failed;
        one.started = 1;
        one.retry_of = Id::make(0, 0, before);
        population.merge(one);
    }
    CHECK_FALSE(Failures(1, 1, 2, population).take_retry(0, population).has_value());
}

TEST_CASE("retries: none without the option, of what never started, or of what had no memory on the only worker") {
    World world(2, 1, evaluations(40), search::ExchangeKind::none);
    world.fails = is_on_the_right;
    REQUIRE(world.run(100000));
    CHECK(retries_of(world.recorded()).empty());

    World other(2, 1, evaluations(40), search::ExchangeKind::none);
    other.retries = 3;
    other.exists = [](const search::Genome&) { return false; };
    REQUIRE(other.run(100000));
    CHECK(retries_of(other.recorded()).empty());

    World alone(1, 1, evaluations(40), search::ExchangeKind::none);
    alone.retries = 3;
    alone.fails = is_on_the_right;
    alone.failure = Outcome::out_of_memory;
    REQUIRE(alone.run(1000000));
    CHECK(retries_of(alone.recorded()).empty());
}

TEST_CASE("retries: a failed evaluation without a retry before a stop is retried once after the restart") {
    int waited = 0;
    for (int rounds = 20; rounds < 200; rounds += 20) {
        World world(4, 2, evaluations(120), search::ExchangeKind::pollination);
        world.retries = 2;
        world.slots = 2;
        world.fails = is_on_the_right;
        world.run(rounds);
        waited += left_over(world.recorded(), 2);
        REQUIRE(world.run(100000, 3));
        const search::Population population = world.recorded();
        CHECK(population.evaluations() == 120);
        check_retries(population, 2);
        CHECK(left_over(population, 2) <= 6);
    }
    CHECK(waited > 0);
}

TEST_CASE("retries: initial points come before retries, and no initial point is lost") {
    World world(2, 1, evaluations(60), search::ExchangeKind::none);
    world.set_space(plane());
    world.initial_design.space = plane();
    world.initial_design.start = search::Start::sobol;
    world.initial_design.points = 16;
    world.retries = 1;
    world.fails = [](const Individual&) { return true; };
    REQUIRE(world.run(100000));
    const search::Population population = world.recorded();
    int first = 0;
    for (const auto& [id, individual] : population.individuals()) {
        const bool is_initial_point = id.sequence() <= 8;
        first += is_initial_point && individual.retry_of == Id{} ? 1 : 0;
    }
    CHECK(first == 16);
}

TEST_CASE("retries: genes that failed up to the limit are not evaluated again, even if duplicates are trained") {
    search::Space space;
    space.genes = {{"word", search::ChoiceGene{{"a", "b"}}}, {"n", search::IntGene{0, 1}}};
    for (const auto duplicates : {search::Duplicates::train, search::Duplicates::breed}) {
        World world(1, 1, evaluations(60), search::ExchangeKind::none, 0);
        world.set_space(space);
        world.initial_design.space = space;
        world.duplicates = duplicates;
        world.retries = 2;
        const auto is_bad = [](const Individual& one) { return one.genome[0] == 1; };
        world.fails = is_bad;
        REQUIRE(world.run(1000000));
        const search::Population population = world.recorded();
        std::map<search::Genome, int> evaluated;
        for (const auto& [id, individual] : population.individuals()) {
            evaluated[individual.genome] += is_bad(individual) ? 1 : 0;
        }
        for (const auto& [genome, count] : evaluated) {
            CHECK((count == 0 || count == 3 || duplicates == search::Duplicates::breed));
        }
    }
}

}  // namespace finch::island
