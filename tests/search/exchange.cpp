#include "finch/search/exchange.hpp"

#include "search/samples.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <set>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

const std::vector<std::int32_t> four{0, 1, 2, 3};

ExchangeOptions always(ExchangeKind kind, std::int64_t migrants, Topology topology = Topology::all) {
    return {kind, topology, 1e9, migrants};
}

/// `count` individuals of island 0, the first the best.
Population on_one_island(ExchangeKind kind, int islands, std::uint32_t count) {
    Population population(kind, islands);
    for (std::uint32_t i = 1; i <= count; ++i) {
        population.merge(evaluated(i, i));
    }
    return population;
}

std::vector<Record> plan(const ExchangeOptions& options, const Population& population, std::int32_t self = 0,
                         std::vector<std::int32_t> workers = {0}, std::uint64_t id = 0) {
    RandomStream random(1, Purpose::exchange, id);
    return plan_exchange(options, population, {0, std::move(workers)}, self, random);
}

}  // namespace

TEST_CASE("all: to every other island; ring: to the next") {
    CHECK(exchange_targets(Topology::all, 1, 4) == std::vector{0, 2, 3});
    CHECK(exchange_targets(Topology::ring, 1, 4) == std::vector{2});
    CHECK(exchange_targets(Topology::ring, 3, 4) == std::vector{0});
    CHECK(exchange_targets(Topology::all, 0, 1).empty());
    CHECK(exchange_targets(Topology::ring, 0, 1).empty());
}

TEST_CASE("every register has one writer, whatever the order of the workers, and the shares are even") {
    const std::vector<std::int32_t> reversed{3, 2, 1, 0};
    std::map<std::int32_t, int> counts;

    for (std::uint32_t i = 0; i < 10000; ++i) {
        const Id id = Id::make(0, i % 7, i);
        const std::int32_t writer = register_writer(id, four);
        CHECK(writer == register_writer(id, reversed));
        ++counts[writer];
    }

    for (const std::int32_t worker : four) {
        CHECK(counts[worker] == doctest::Approx(2500).epsilon(0.08));  // 4.6 standard deviations
    }
    CHECK_THROWS((void)register_writer(Id{1}, {}));
}

TEST_CASE("when a worker goes, only its registers change hands") {
    const std::vector<std::int32_t> three{0, 1, 3};

    for (std::uint32_t i = 0; i < 2000; ++i) {
        const Id id = Id::make(0, 1, i);
        const std::int32_t before = register_writer(id, four);
        if (before != 2) {
            CHECK(register_writer(id, three) == before);
        }
    }
}

TEST_CASE("an exchange happens with the probability per island, divided among its workers") {
    const Population population = on_one_island(ExchangeKind::pollination, 2, 5);
    const auto share_of = [&](const std::vector<std::int32_t>& workers) {
        int sent = 0;
        for (std::uint64_t i = 0; i < 10000; ++i) {
            sent += plan({ExchangeKind::pollination, Topology::all, 0.8, 1}, population, 0, workers, i).empty() ? 0 : 1;
        }
        return sent / 10000.0;
    };

    CHECK(share_of({0}) == doctest::Approx(0.8).epsilon(0.02));
    CHECK(share_of(four) == doctest::Approx(0.2).epsilon(0.08));
}

TEST_CASE("nothing is sent without exchange, with one island, or from an empty island") {
    CHECK(plan(always(ExchangeKind::none, 1), on_one_island(ExchangeKind::none, 2, 5)).empty());
    for (const ExchangeKind kind : {ExchangeKind::migration, ExchangeKind::pollination}) {
        CHECK(plan(always(kind, 1), on_one_island(kind, 1, 5)).empty());
        CHECK(plan(always(kind, 1), on_one_island(kind, 2, 0)).empty());
        CHECK(plan(always(kind, 0), on_one_island(kind, 2, 5)).empty());
    }
}

TEST_CASE("migration: the best go, in disjoint shares, and live elsewhere once the moves are merged") {
    Population population = on_one_island(ExchangeKind::migration, 3, 10);

    const auto moves = plan(always(ExchangeKind::migration, 2), population);

    REQUIRE(moves.size() == 4);
    std::set<Id> moved;
    for (const Record& record : moves) {
        const auto& move = std::get<Move>(record);
        moved.insert(move.individual.id);
        CHECK(move.home.version == 1);
        CHECK(move.home.writer == 0);
        CHECK(population.merge(record));
    }
    CHECK(moved == std::set{bred(1).id, bred(2).id, bred(3).id, bred(4).id});
    CHECK(population.active(0) == 6);
    CHECK(population.active(1) == 2);
    CHECK(population.active(2) == 2);
}

TEST_CASE("migration: which target gets which individual is left to chance") {
    const Population population = on_one_island(ExchangeKind::migration, 3, 10);
    int best_to_first = 0;

    for (std::uint64_t i = 0; i < 1000; ++i) {
        for (const Record& record : plan(always(ExchangeKind::migration, 1), population, 0, {0}, i)) {
            const auto& move = std::get<Move>(record);
            best_to_first += move.individual.id == bred(1).id && move.home.island == 1 ? 1 : 0;
        }
    }

    CHECK(best_to_first == doctest::Approx(500).epsilon(0.13));
}

TEST_CASE("migration: too few for all targets means that nobody goes") {
    const Population population = on_one_island(ExchangeKind::migration, 3, 3);

    CHECK(plan(always(ExchangeKind::migration, 2), population).empty());
    CHECK(plan(always(ExchangeKind::migration, 2, Topology::ring), population).size() == 2);
}

TEST_CASE("migration: the workers of an island never send the same individual, and each sends its best") {
    const Population population = on_one_island(ExchangeKind::migration, 2, 400);
    std::set<Id> sent;

    for (const std::int32_t self : four) {
        const auto moves = plan(always(ExchangeKind::migration, 10), population, self, four);
        REQUIRE(moves.size() == 10);
        std::set<Id> mine;
        for (std::uint32_t i = 1; i <= 400 && mine.size() < 10; ++i) {
            if (register_writer(bred(i).id, four) == self) {
                mine.insert(bred(i).id);
            }
        }
        for (const Record& record : moves) {
            const auto& move = std::get<Move>(record);
            CHECK(mine.contains(move.individual.id));
            CHECK(sent.insert(move.individual.id).second);
            CHECK(move.home.writer == self);
        }
    }
}

TEST_CASE("migration: who came can go on, under the next version") {
    Population population = on_one_island(ExchangeKind::migration, 2, 0);
    population.merge(Record{Move{evaluated(1, 1, 1), {6, 9, 0}}});

    const auto moves = plan(always(ExchangeKind::migration, 1), population);

    REQUIRE(moves.size() == 1);
    CHECK(std::get<Move>(moves[0]).home == Home{7, 0, 1});
}

TEST_CASE("migration: nobody is lost or doubled") {
    Population population = on_one_island(ExchangeKind::migration, 3, 60);
    for (std::uint64_t round = 0; round < 100; ++round) {
        const int island = static_cast<int>(round % 3);
        RandomStream random(1, Purpose::exchange, round);
        for (const Record& record :
             plan_exchange(always(ExchangeKind::migration, 2), population, {island, {island}}, island, random)) {
            population.merge(record);
        }
        CHECK(population.active(0) + population.active(1) + population.active(2) == 60);
    }

    CHECK(population.active(1) > 0);
    CHECK(population.active(2) > 0);
}

TEST_CASE("pollination: the best is copied to every target and stays") {
    Population population = on_one_island(ExchangeKind::pollination, 3, 5);
    population.merge(evaluated(10, 50, 1));
    population.merge(evaluated(11, 50, 2));

    const auto copies = plan(always(ExchangeKind::pollination, 1), population);

    REQUIRE(copies.size() == 2);
    for (const Record& record : copies) {
        CHECK(std::get<Copy>(record).individual.id == bred(1).id);
        population.merge(record);
    }
    for (const int island : {0, 1, 2}) {
        CHECK(population.best(island, 1).at(0)->id == bred(1).id);
    }
    CHECK(population.active(0) == 5);
    CHECK(population.active(1) == 1);
}

TEST_CASE("pollination: a copy that is known to be there is not sent again") {
    Population population = on_one_island(ExchangeKind::pollination, 3, 5);
    const auto options = always(ExchangeKind::pollination, 1);
    population.merge_membership(bred(1).id, 1);
    CHECK(plan(options, population).size() == 1);
    population.merge_membership(bred(1).id, 2);
    CHECK(plan(options, population).empty());

    population.merge(evaluated(9, 0.5, 2));
    population.merge_membership(bred(9).id, 0);  // the best of island 0 was born on island 2

    const auto copies = plan(options, population);
    REQUIRE(copies.size() == 1);
    CHECK(std::get<Copy>(copies[0]).island == 1);
    CHECK(std::get<Copy>(copies[0]).individual.id == bred(9).id);
}

TEST_CASE("pollination: with fewer than asked for, as many as there are") {
    const Population population = on_one_island(ExchangeKind::pollination, 2, 3);

    CHECK(plan(always(ExchangeKind::pollination, 7), population).size() == 3);
}
