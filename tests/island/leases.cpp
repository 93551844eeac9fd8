#include "finch/island/leases.hpp"

#include <array>
#include <doctest/doctest.h>

namespace finch::island {
namespace {

using Kind = search::LeaseMessage::Kind;

search::Population population_of(std::initializer_list<int> bred_by_worker) {
    search::Population population(search::ExchangeKind::none, 1);
    std::uint32_t worker = 0;
    for (const int bred : bred_by_worker) {
        for (int i = 1; i <= bred; ++i) {
            search::Individual individual;
            individual.id = search::Id::make(0, worker, static_cast<std::uint32_t>(i));
            individual.outcome = search::Outcome::evaluated;
            individual.loss = i;
            individual.genome = {static_cast<double>(i)};
            population.merge(individual);
        }
        ++worker;
    }
    return population;
}

constexpr std::array<std::int64_t, 8> none{};

/// Returns a server for the first start, without unfinished individuals.
LeaseServer server_of(const Budget& budget, const search::Population& population, std::size_t workers) {
    return {budget, population, {}, std::span(none).first(workers)};
}

/// Requests leases for `worker` until the server answers `exhausted`. Returns the number of granted evaluations.
std::int64_t drain(LeaseServer& server, std::int32_t worker, double seconds) {
    std::int64_t given = 0;
    while (true) {
        const auto answer = server.answer({Kind::request, worker, 0, seconds});
        REQUIRE(answer.has_value());
        if (answer->kind == Kind::exhausted) {
            return given;
        }
        given += answer->count;
    }
}

}  // namespace

TEST_CASE("LeaseServer: grants exactly the budget, for any order and speed of requests") {
    Budget budget;
    budget.evaluations = 1000;
    LeaseServer server = server_of(budget, population_of({}), 4);
    std::int64_t given = 0;

    for (int round = 0; round < 100000 && given < 1000; ++round) {
        const auto answer = server.answer({Kind::request, round % 4, 0, round % 3 == 0 ? 1.0 : 1e-5});
        given += answer->count;
    }

    CHECK(given == 1000);
    CHECK(server.answer({Kind::request, 0, 0, 0})->kind == Kind::exhausted);
}

TEST_CASE("LeaseServer: grants one lease for evaluations above 10 ms, and a share of the budget for short ones") {
    Budget budget;
    budget.evaluations = 1600;
    LeaseServer server = server_of(budget, population_of({}), 4);

    CHECK(server.answer({Kind::request, 0, 0, 5.0})->count == 1);
    CHECK(server.answer({Kind::request, 0, 0, 1e-5})->count == 1599 / 16);
}

TEST_CASE("LeaseServer: known individuals count against the budget, and returned leases are granted again") {
    Budget budget;
    budget.evaluations = 10;
    LeaseServer server = server_of(budget, population_of({3, 4}), 2);

    CHECK(drain(server, 0, 1.0) == 3);
    CHECK_FALSE(server.answer({Kind::give_back, 0, 2, 0}).has_value());
    CHECK(drain(server, 1, 1.0) == 2);
}

TEST_CASE("LeaseServer: reused results do not count against a budget") {
    search::Population population = population_of({4, 6});
    search::Individual reused;
    reused.id = search::Id::make(0, 0, 99);
    reused.reused_from = search::Id::make(0, 0, 1);
    reused.outcome = search::Outcome::evaluated;
    reused.loss = 1;
    population.merge(reused);
    Budget budget;
    budget.evaluations = 12;
    LeaseServer server = server_of(budget, population, 2);

    CHECK(drain(server, 0, 1.0) == 2);
    CHECK(generation_quotas(10, population, std::vector<EarlierStart>{{0, 2}}, std::vector<std::int64_t>{0}) ==
          std::vector<std::int64_t>{5});
}

TEST_CASE("LeaseServer: all_done() is true only after every worker sent `done`") {
    LeaseServer server = server_of(Budget{}, population_of({}), 2);

    CHECK_FALSE(server.all_done());
    static_cast<void>(server.answer({Kind::done, 1, 0, 0}));
    CHECK_FALSE(server.all_done());
    static_cast<void>(server.answer({Kind::done, 0, 0, 0}));
    CHECK(server.all_done());
}

TEST_CASE("LeaseServer: a budget of generations grants each worker the same number of evaluations") {
    Budget budget;
    budget.generations = 5;
    LeaseServer server = server_of(budget, population_of({}), 2);

    CHECK(drain(server, 0, 1.0) == 5);
    CHECK(drain(server, 1, 1e-5) == 5);
}

TEST_CASE("generation_quotas: each start gets the unused fraction of the generations, for any number of workers") {
    const auto quotas = [](const search::Population& population, std::vector<EarlierStart> earlier,
                           std::vector<std::int64_t> dealt) {
        return generation_quotas(10, population, earlier, dealt);
    };
    using Quotas = std::vector<std::int64_t>;

    CHECK(quotas(population_of({4, 6}), {{0, 2}}, {0, 0, 0, 0, 0}) == Quotas(5, 5));  // half of the budget is left
    CHECK(quotas(population_of({4, 6}), {{0, 2}}, {0}) == Quotas{5});
    CHECK(quotas(population_of({10, 10}), {{0, 2}}, {0, 0, 0}) == Quotas(3, 0));
    CHECK(quotas(population_of({3, 4, 3}), {{0, 3}}, {0}) == Quotas{7});  // 10 × (1 − 10/30), rounded
    // Unfinished individuals are evaluated in this start and count against its quota. A worker with more unfinished
    // individuals breeds fewer.
    CHECK(quotas(population_of({4, 6}), {{0, 2}}, {3, 0}) == Quotas{2, 5});
    CHECK(quotas(population_of({4, 6}), {{0, 2}}, {9, 2}) == Quotas{0, 0});
}

TEST_CASE("generation_quotas: a result counts in the start that trained it, not in the start that bred it") {
    search::Population population = population_of({8});
    search::Individual resumed;
    resumed.id = search::Id::make(0, 0, 9);
    resumed.outcome = search::Outcome::evaluated;
    resumed.loss = 1;
    resumed.attempt = {1, 0};  // bred in start 0, trained in start 1
    population.merge(resumed);
    const std::vector<EarlierStart> earlier{{0, 4}, {1, 1}};

    // Start 0 used 8 of 40 evaluations, and start 1 used 1 of 10. This start gets the remaining 0.7 of its 20
    // evaluations.
    CHECK(generation_quotas(10, population, earlier, std::array<std::int64_t, 2>{}) == std::vector<std::int64_t>{7, 7});
}

TEST_CASE("final choice: the server grants repeats only after all trainings have ended, and each names a candidate") {
    Budget budget;
    budget.evaluations = 13;
    search::Population population = population_of({4, 3});
    LeaseServer server(budget, population, {}, std::span(none).first(2), search::FinalChoice{2, 2});
    const search::LeaseMessage request{Kind::request, 1, 0, 1.0};
    CHECK(server.answer(request)->count == 1);
    CHECK(server.answer(request)->count == 1);

    CHECK_FALSE(server.answer(request));
    CHECK(server.begin_final_choice(population) == 0);  // two individuals are in training
    for (const std::uint32_t number : {50U, 51U}) {
        search::Individual individual;
        individual.id = search::Id::make(0, 1, number);
        individual.genome = {static_cast<double>(number)};
        population.merge(individual);
        CHECK(server.begin_final_choice(population) == 0);
        individual.outcome = search::Outcome::evaluated;
        individual.loss = number == 50 ? 0.5 : 100;
        population.merge(individual);
    }
    CHECK_FALSE(server.answer(request));
    CHECK(server.begin_final_choice(population) == 4);
    CHECK(server.begin_final_choice(population) == 0);

    std::vector<std::uint32_t> named;
    for (auto answer = server.answer(request); answer->kind == Kind::grant; answer = server.answer(request)) {
        CHECK(answer->count == 1);
        named.push_back(answer->repeat.of.sequence());
    }
    CHECK(named == std::vector<std::uint32_t>{50, 1, 50, 1});
    CHECK(server.answer(request)->kind == Kind::exhausted);
}

TEST_CASE("final choice: short evaluations do not use the reserved repeats, and a closed server answers `exhausted`") {
    Budget budget;
    budget.evaluations = 1000;
    LeaseServer server(budget, population_of({}), {}, std::span(none).first(1), search::FinalChoice{5, 20});
    std::int64_t given = 0;
    for (auto answer = server.answer({Kind::request, 0, 0, 1e-5}); answer;
         answer = server.answer({Kind::request, 0, 0, 1e-5})) {
        given += answer->count;
    }

    CHECK(given == 900);
    server.close();
    CHECK(server.answer({Kind::request, 0, 0, 1e-5})->kind == Kind::exhausted);
}

TEST_CASE("LeaseClient: stores a lease for a repeat separately, and requests no lease until the repeat is taken") {
    LeaseClient client;
    CHECK(client.should_ask(true));
    client.receive({Kind::grant, 0, 1, 0, {search::Id::make(0, 1, 2), {0.5}}});

    CHECK_FALSE(client.take());
    CHECK_FALSE(client.should_ask(true));
    const auto repeat = client.take_repeat();
    REQUIRE(repeat.has_value());
    CHECK(repeat->of == search::Id::make(0, 1, 2));
    CHECK(repeat->genome == search::Genome{0.5});
    CHECK_FALSE(client.take_repeat().has_value());
    CHECK(client.should_ask(true));
}

TEST_CASE("LeaseClient: requests once, and makes no request while it holds leases") {
    LeaseClient client;

    CHECK_FALSE(client.should_ask(false));
    CHECK(client.should_ask(true));
    CHECK_FALSE(client.should_ask(true));
    client.receive({Kind::grant, 0, 2, 0});
    CHECK_FALSE(client.should_ask(true));
    CHECK(client.take());
    CHECK(client.take());
    CHECK_FALSE(client.take());
    CHECK(client.should_ask(true));
    client.receive({Kind::exhausted, 0, 0, 0});
    CHECK(client.exhausted());
    CHECK_FALSE(client.should_ask(true));
}

TEST_CASE("LeaseClient: gives leases back only if it may get other ones, or at a stop") {
    LeaseClient client;
    CHECK(client.should_ask(true));
    client.receive({Kind::grant, 0, 4, 0});
    CHECK(client.take());
    CHECK(client.take());

    CHECK(client.should_ask(true));
    CHECK(client.release() == 0);  // the answer may be `exhausted`
    client.receive({Kind::exhausted, 0, 0, 0});
    CHECK(client.release() == 0);
    CHECK_FALSE(client.exhausted());
    CHECK(client.return_leases() == 2);
    CHECK(client.exhausted());
}

}  // namespace finch::island
