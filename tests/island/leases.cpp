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

/// An server at the first start, where nothing is unfinished.
LeaseServer server_of(const Budget& budget, const search::Population& population, std::size_t workers) {
    return {budget, population, {}, std::span(none).first(workers)};
}

/// Asks for `worker` until told `exhausted`; returns how many evaluations it was given.
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

TEST_CASE("the server leases exactly the budget, whoever asks how fast") {
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

TEST_CASE("an evaluation of over 10 ms is leased alone, a short one a share of what remains") {
    Budget budget;
    budget.evaluations = 1600;
    LeaseServer server = server_of(budget, population_of({}), 4);

    CHECK(server.answer({Kind::request, 0, 0, 5.0})->count == 1);
    CHECK(server.answer({Kind::request, 0, 0, 1e-5})->count == 1599 / 16);
}

TEST_CASE("what is known already counts against the budget, and what is given back can be leased again") {
    Budget budget;
    budget.evaluations = 10;
    LeaseServer server = server_of(budget, population_of({3, 4}), 2);

    CHECK(drain(server, 0, 1.0) == 3);
    CHECK_FALSE(server.answer({Kind::give_back, 0, 2, 0}).has_value());
    CHECK(drain(server, 1, 1.0) == 2);
}

TEST_CASE("a result that was taken over counts in no budget") {
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

TEST_CASE("all are done only when everybody has said so") {
    LeaseServer server = server_of(Budget{}, population_of({}), 2);

    CHECK_FALSE(server.all_done());
    static_cast<void>(server.answer({Kind::done, 1, 0, 0}));
    CHECK_FALSE(server.all_done());
    static_cast<void>(server.answer({Kind::done, 0, 0, 0}));
    CHECK(server.all_done());
}

TEST_CASE("a budget of generations gives each worker as many") {
    Budget budget;
    budget.generations = 5;
    LeaseServer server = server_of(budget, population_of({}), 2);

    CHECK(drain(server, 0, 1.0) == 5);
    CHECK(drain(server, 1, 1e-5) == 5);
}

TEST_CASE("what is left of a budget of generations is a share of it, whatever the layouts were") {
    const auto quotas = [](const search::Population& population, std::vector<EarlierStart> earlier,
                           std::vector<std::int64_t> dealt) {
        return generation_quotas(10, population, earlier, dealt);
    };
    using Quotas = std::vector<std::int64_t>;

    CHECK(quotas(population_of({4, 6}), {{0, 2}}, {0, 0, 0, 0, 0}) == Quotas(5, 5));  // half of it is left
    CHECK(quotas(population_of({4, 6}), {{0, 2}}, {0}) == Quotas{5});
    CHECK(quotas(population_of({10, 10}), {{0, 2}}, {0, 0, 0}) == Quotas(3, 0));
    CHECK(quotas(population_of({3, 4, 3}), {{0, 3}}, {0}) == Quotas{7});  // 10 × (1 − 10/30), rounded
    // The unfinished are evaluated in this start, so they count; who has more of them breeds fewer.
    CHECK(quotas(population_of({4, 6}), {{0, 2}}, {3, 0}) == Quotas{2, 5});
    CHECK(quotas(population_of({4, 6}), {{0, 2}}, {9, 2}) == Quotas{0, 0});
}

TEST_CASE("a budget of generations counts each result in the start that trained it") {
    search::Population population = population_of({8});
    search::Individual resumed;
    resumed.id = search::Id::make(0, 0, 9);
    resumed.outcome = search::Outcome::evaluated;
    resumed.loss = 1;
    resumed.attempt = {1, 0};  // bred in start 0, trained in start 1
    population.merge(resumed);
    const std::vector<EarlierStart> earlier{{0, 4}, {1, 1}};

    // 10 generations: start 0 used 8 of 40, start 1 used 1 of 10; 0.7 are left, of 20.
    CHECK(generation_quotas(10, population, earlier, std::array<std::int64_t, 2>{}) == std::vector<std::int64_t>{7, 7});
}

TEST_CASE(
    "leases are held back until everybody is finished, then each names one of the best; what is bred is the rest") {
    Budget budget;
    budget.evaluations = 13;
    search::Population population = population_of({4, 3});
    LeaseServer server(budget, population, {}, std::span(none).first(2), search::FinalChoice{2, 2});
    const search::LeaseMessage request{Kind::request, 1, 0, 1.0};
    CHECK(server.answer(request)->count == 1);
    CHECK(server.answer(request)->count == 1);

    CHECK_FALSE(server.answer(request));
    CHECK(server.begin_final_choice(population) == 0);  // two are on their way
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

TEST_CASE("short evaluations do not use what is held back, and a server that is closed lets nobody wait") {
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

TEST_CASE("a client keeps a lease that names somebody apart, and asks for no other beside it") {
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

TEST_CASE("a client asks once, and not while it holds leases") {
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

}  // namespace finch::island
