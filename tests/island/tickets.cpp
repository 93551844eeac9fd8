#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "finch/island/tickets.hpp"

#include <doctest/doctest.h>

namespace finch::island {
namespace {

using Kind = search::Tickets::Kind;

search::Population population_of(std::initializer_list<int> bred_by_worker) {
    search::Population population(search::ExchangeKind::none, 1);
    std::uint32_t worker = 0;
    for (const int bred : bred_by_worker) {
        for (int i = 1; i <= bred; ++i) {
            search::Individual individual;
            individual.id = search::Id::make(0, worker, static_cast<std::uint32_t>(i));
            individual.outcome = search::Outcome::evaluated;
            individual.loss = i;
            population.merge(individual);
        }
        ++worker;
    }
    return population;
}

/// Asks for `worker` until told `exhausted`; returns how many tickets it was given.
std::int64_t drain(TicketOffice& office, std::int32_t worker, double seconds) {
    std::int64_t given = 0;
    while (true) {
        const auto answer = office.answer({Kind::request, worker, 0, seconds});
        REQUIRE(answer.has_value());
        if (answer->kind == Kind::exhausted) {
            return given;
        }
        given += answer->count;
    }
}

}  // namespace

TEST_CASE("the office leases exactly the budget, whoever asks how fast") {
    Budget budget;
    budget.evaluations = 1000;
    TicketOffice office(budget, population_of({}), 0, 4);
    std::int64_t given = 0;

    for (int round = 0; round < 100000 && office.remaining() > 0; ++round) {
        const auto answer = office.answer({Kind::request, round % 4, 0, round % 3 == 0 ? 1.0 : 1e-5});
        given += answer->count;
    }

    CHECK(given == 1000);
    CHECK(office.answer({Kind::request, 0, 0, 0})->kind == Kind::exhausted);
}

TEST_CASE("an evaluation of over 10 ms gets one ticket, a short one a share of what remains") {
    Budget budget;
    budget.evaluations = 1600;
    TicketOffice office(budget, population_of({}), 0, 4);

    CHECK(office.answer({Kind::request, 0, 0, 5.0})->count == 1);
    CHECK(office.answer({Kind::request, 0, 0, 1e-5})->count == 1599 / 16);
}

TEST_CASE("what is known already counts against the budget, and what is given back can be leased again") {
    Budget budget;
    budget.evaluations = 10;
    TicketOffice office(budget, population_of({3, 4}), 2, 2);

    CHECK(drain(office, 0, 1.0) == 3);
    CHECK_FALSE(office.answer({Kind::give_back, 0, 2, 0}).has_value());
    CHECK(drain(office, 1, 1.0) == 2);
}

TEST_CASE("all are done only when everybody has said so") {
    TicketOffice office(Budget{}, population_of({}), 0, 2);

    CHECK_FALSE(office.all_done());
    static_cast<void>(office.answer({Kind::done, 1, 0, 0}));
    CHECK_FALSE(office.all_done());
    static_cast<void>(office.answer({Kind::done, 0, 0, 0}));
    CHECK(office.all_done());
}

TEST_CASE("a budget of generations gives each worker as many, on from where it was") {
    Budget budget;
    budget.generations = 5;
    TicketOffice fresh(budget, population_of({}), 0, 2);
    TicketOffice resumed(budget, population_of({2, 5}), 2, 2);

    CHECK(drain(fresh, 0, 1.0) == 5);
    CHECK(drain(fresh, 1, 1e-5) == 5);
    CHECK(drain(resumed, 0, 1.0) == 3);
    CHECK(drain(resumed, 1, 1.0) == 0);
}

TEST_CASE("generations after a restart with other workers: the rest, per worker, rounded up") {
    CHECK(generation_quotas(10, population_of({4, 6}), 2, 5) == std::vector<std::int64_t>(5, 5));
    CHECK(generation_quotas(10, population_of({4, 7}), 2, 1) == std::vector<std::int64_t>(1, 5));
    CHECK(generation_quotas(10, population_of({10, 10}), 2, 3) == std::vector<std::int64_t>(3, 0));
}

TEST_CASE("a purse asks once, and not while it has tickets") {
    TicketPurse purse;

    CHECK_FALSE(purse.should_ask(false));
    CHECK(purse.should_ask(true));
    CHECK_FALSE(purse.should_ask(true));
    purse.receive({Kind::grant, 0, 2, 0});
    CHECK_FALSE(purse.should_ask(true));
    CHECK(purse.take());
    CHECK(purse.take());
    CHECK_FALSE(purse.take());
    CHECK(purse.should_ask(true));
    purse.receive({Kind::exhausted, 0, 0, 0});
    CHECK(purse.exhausted());
    CHECK_FALSE(purse.should_ask(true));
}

}  // namespace finch::island
