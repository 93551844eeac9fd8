#include "finch/search/exchange.hpp"

#include "search/fit.hpp"
#include "search/samples.hpp"

#include <array>
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

constexpr std::array all_topologies{Topology::all,    Topology::ring,  Topology::torus, Topology::star,
                                    Topology::random, Topology::nodes, Topology::matrix};

/// Returns options with two islands on each node, and a matrix that forms a ring with a probability of 0.9.
ExchangeOptions of_topology(Topology topology, int islands) {
    ExchangeOptions options = always(ExchangeKind::pollination, 1, topology);
    options.matrix.assign(static_cast<std::size_t>(islands), std::vector<double>(static_cast<std::size_t>(islands)));
    for (int island = 0; island < islands; ++island) {
        options.node_of_island.push_back(island / 2);
        options.matrix[static_cast<std::size_t>(island)][static_cast<std::size_t>((island + 1) % islands)] = 0.9;
    }
    return options;
}

std::vector<int> targets_of(Topology topology, int island, int islands) {
    RandomStream random(1, Purpose::test);
    return exchange_targets(always(ExchangeKind::pollination, 1, topology), island, islands, random);
}

/// Returns `count` individuals of island 0. The first one is the best.
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

TEST_CASE("exchange_targets: the target islands of all topologies that use no random numbers") {
    using Targets = std::vector<int>;

    CHECK(targets_of(Topology::all, 1, 4) == Targets{0, 2, 3});
    CHECK(targets_of(Topology::ring, 1, 4) == Targets{2});
    CHECK(targets_of(Topology::ring, 3, 4) == Targets{0});
    CHECK(targets_of(Topology::torus, 0, 6) == Targets{1, 2, 3});  // rows of the torus: 0 1 2 and 3 4 5
    CHECK(targets_of(Topology::torus, 4, 9) == Targets{1, 3, 5, 7});
    CHECK(targets_of(Topology::torus, 0, 12) == Targets{1, 3, 4, 8});  // a torus of three rows of four
    CHECK(targets_of(Topology::torus, 0, 5) == Targets{1, 4});         // a prime number gives a ring in both directions
    CHECK(targets_of(Topology::star, 0, 4) == Targets{1, 2, 3});
    CHECK(targets_of(Topology::star, 2, 4) == Targets{0});
    CHECK(targets_of(Topology::nodes, 1, 4) == Targets{0, 2, 3});  // all islands are on one node
}

TEST_CASE("nodes: exchange among all islands of a node, and between the first islands of consecutive nodes") {
    ExchangeOptions options = always(ExchangeKind::pollination, 1, Topology::nodes);
    options.node_of_island = {0, 0, 1, 2, 1, 2, 2};
    std::vector<std::vector<int>> targets;
    for (int island = 0; island < 7; ++island) {
        RandomStream random(1, Purpose::test);
        targets.push_back(exchange_targets(options, island, 7, random));
    }

    CHECK(targets == std::vector<std::vector<int>>{{1, 2}, {0}, {3, 4}, {0, 5, 6}, {2}, {3, 6}, {3, 5}});
    options.node_of_island = {0, 0};
    RandomStream random(1, Purpose::test);
    CHECK_THROWS((void)exchange_targets(options, 3, 4, random));
}

TEST_CASE("with every topology, information from each island reaches all others, and no island sends to itself") {
    for (const Topology topology : all_topologies) {
        for (int islands = 1; islands <= 13; ++islands) {
            std::vector<std::set<int>> reached(static_cast<std::size_t>(islands));
            for (int from = 0; from < islands; ++from) {
                std::set<int>& known = reached[static_cast<std::size_t>(from)];
                known = {from};
                for (std::uint64_t round = 0; round < 40; ++round) {
                    std::set<int> next = known;
                    for (const int island : known) {
                        RandomStream random(7, Purpose::exchange, round, static_cast<std::uint32_t>(island));
                        for (const int target :
                             exchange_targets(of_topology(topology, islands), island, islands, random)) {
                            CHECK(target != island);
                            CHECK((0 <= target && target < islands));
                            next.insert(target);
                        }
                    }
                    known = std::move(next);
                }
                CHECK(known.size() == static_cast<std::size_t>(islands));
            }
        }
    }
}

TEST_CASE("random: all other islands are equally likely; matrix: each target has its own probability") {
    ExchangeOptions matrix = always(ExchangeKind::pollination, 1, Topology::matrix);
    matrix.matrix = {{1, 0.2, 0, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
    std::map<double, int> targets;
    std::map<int, int> by_matrix;

    for (std::uint64_t i = 0; i < 20000; ++i) {
        RandomStream random(3, Purpose::exchange, i);
        const auto chosen = exchange_targets(always(ExchangeKind::migration, 1, Topology::random), 1, 4, random);
        REQUIRE(chosen.size() == 1);
        ++targets[chosen[0]];
        for (const int target : exchange_targets(matrix, 0, 4, random)) {
            ++by_matrix[target];
        }
    }

    CHECK(misfit(targets, {{0, 1 / 3.0}, {2, 1 / 3.0}, {3, 1 / 3.0}}) < 1);
    CHECK(by_matrix[3] == 20000);
    CHECK(by_matrix[1] == doctest::Approx(4000).epsilon(0.07));  // 5 standard deviations
    CHECK(by_matrix.size() == 2);
}

TEST_CASE("emigrants: `random` sends all individuals equally often, `tournament` sends the better of two random ones") {
    constexpr int count = 6;
    const Population population = on_one_island(ExchangeKind::pollination, 2, count);
    const auto sent = [&](Emigrants emigrants) {
        std::map<double, int> counts;
        for (std::uint64_t i = 0; i < 20000; ++i) {
            ExchangeOptions options = always(ExchangeKind::pollination, 1);
            options.emigrants = emigrants;
            const auto copies = plan(options, population, 0, {0}, i);
            REQUIRE(copies.size() == 1);
            ++counts[std::get<Copy>(copies[0]).individual.loss];
        }
        return counts;
    };
    std::map<double, double> even;
    std::map<double, double> better_of_two;
    for (int rank = 1; rank <= count; ++rank) {
        even[rank] = 1.0 / count;
        if (rank < count) {
            better_of_two[rank] = 2.0 * (count - rank) / (count * (count - 1));
        }
    }

    CHECK(misfit(sent(Emigrants::random), even) < 1);
    CHECK(misfit(sent(Emigrants::tournament), better_of_two) < 1);
}

TEST_CASE("emigrants: the emigrants of one exchange are all different, and their registers belong to the worker") {
    const Population population = on_one_island(ExchangeKind::migration, 2, 400);
    for (const Emigrants emigrants : {Emigrants::random, Emigrants::tournament}) {
        ExchangeOptions options = always(ExchangeKind::migration, 50);
        options.emigrants = emigrants;
        const auto moves = plan(options, population, 2, four);
        REQUIRE(moves.size() == 50);
        std::set<Id> moved;
        for (const Record& record : moves) {
            const Id id = std::get<Move>(record).individual.id;
            CHECK(moved.insert(id).second);
            CHECK(register_writer(id, four) == 2);
        }
        options.migrants = 400;
        CHECK(plan(options, population, 2, four).empty());
    }
}

TEST_CASE("a matrix of migrants: each pair of islands has its own number, and 0 sends nothing") {
    for (const ExchangeKind kind : {ExchangeKind::migration, ExchangeKind::pollination}) {
        const Population population = on_one_island(kind, 4, 40);
        ExchangeOptions options = always(kind, 1);
        options.migrants_between = {{9, 3, 0, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
        std::map<int, std::set<Id>> sent;
        for (const Record& record : plan(options, population)) {
            if (const auto* move = std::get_if<Move>(&record)) {
                sent[move->home.island].insert(move->individual.id);
            } else {
                sent[std::get<Copy>(record).island].insert(std::get<Copy>(record).individual.id);
            }
        }

        CHECK(sent.size() == 2);
        CHECK(sent[1].size() == 3);
        CHECK(sent[3].size() == 1);
        const std::vector<const Individual*> best = population.best(0, 4);
        std::set<Id> all = sent[1];
        all.insert(sent[3].begin(), sent[3].end());
        CHECK(all.size() == (kind == ExchangeKind::migration ? 4 : 3));  // a copy of the best goes to both islands
        for (std::size_t place = 0; place < all.size(); ++place) {
            CHECK(all.contains(best[place]->id));
        }
        options.migrants_between.front() = {5, 0, 0, 0};
        CHECK(plan(options, population).empty());
    }
}

TEST_CASE("a matrix of equal numbers of migrants sends the same as the number") {
    for (const ExchangeKind kind : {ExchangeKind::migration, ExchangeKind::pollination}) {
        for (const Emigrants emigrants : {Emigrants::best, Emigrants::random}) {
            const Population population = on_one_island(kind, 3, 40);
            ExchangeOptions options = always(kind, 2);
            options.emigrants = emigrants;
            const auto by_number = plan(options, population);
            options.migrants_between.assign(3, {2, 2, 2});

            const auto by_matrix = plan(options, population);

            REQUIRE(by_matrix.size() == by_number.size());
            for (std::size_t place = 0; place < by_number.size(); ++place) {
                CHECK(encode(by_matrix[place], 1) == encode(by_number[place], 1));
            }
        }
    }
}

TEST_CASE("register_writer: returns one worker per individual, for any order of the workers, with even shares") {
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

TEST_CASE("register_writer: if a worker leaves, only its registers get a new writer") {
    const std::vector<std::int32_t> three{0, 1, 3};

    for (std::uint32_t i = 0; i < 2000; ++i) {
        const Id id = Id::make(0, 1, i);
        const std::int32_t before = register_writer(id, four);
        if (before != 2) {
            CHECK(register_writer(id, three) == before);
        }
    }
}

TEST_CASE("each worker exchanges with the island's probability divided by the island's number of workers") {
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

TEST_CASE("plan_exchange: sends nothing without exchange, with one island, or from an empty island") {
    CHECK(plan(always(ExchangeKind::none, 1), on_one_island(ExchangeKind::none, 2, 5)).empty());
    for (const ExchangeKind kind : {ExchangeKind::migration, ExchangeKind::pollination}) {
        CHECK(plan(always(kind, 1), on_one_island(kind, 1, 5)).empty());
        CHECK(plan(always(kind, 1), on_one_island(kind, 2, 0)).empty());
        CHECK(plan(always(kind, 0), on_one_island(kind, 2, 5)).empty());
    }
}

TEST_CASE("migration: each of the best individuals moves to one target, and is active there after the merge") {
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

TEST_CASE("migration: the assignment of individuals to targets is random") {
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

TEST_CASE("migration: no individual moves if there are too few for all targets") {
    const Population population = on_one_island(ExchangeKind::migration, 3, 3);

    CHECK(plan(always(ExchangeKind::migration, 2), population).empty());
    CHECK(plan(always(ExchangeKind::migration, 2, Topology::ring), population).size() == 2);
}

TEST_CASE("migration: workers of one island send different individuals, and each worker sends its best") {
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

TEST_CASE("migration: an immigrant can move again, and its register gets the next version") {
    Population population = on_one_island(ExchangeKind::migration, 2, 0);
    population.merge(Record{Move{evaluated(1, 1, 1), {6, 9, 0}}});

    const auto moves = plan(always(ExchangeKind::migration, 1), population);

    REQUIRE(moves.size() == 1);
    CHECK(std::get<Move>(moves[0]).home == Home{7, 0, 1});
}

TEST_CASE("migration: repeated moves neither lose nor duplicate an individual") {
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

TEST_CASE("pollination: the best individual is copied to every target and remains on its island") {
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

TEST_CASE("pollination: a copy is not sent to an island that is known to have the individual") {
    Population population = on_one_island(ExchangeKind::pollination, 3, 5);
    const auto options = always(ExchangeKind::pollination, 1);
    population.merge_membership(bred(1).id, 1);
    CHECK(plan(options, population).size() == 1);
    population.merge_membership(bred(1).id, 2);
    CHECK(plan(options, population).empty());

    population.merge(evaluated(9, 0.5, 2));
    population.merge_membership(bred(9).id, 0);  // the best individual of island 0 was born on island 2

    const auto copies = plan(options, population);
    REQUIRE(copies.size() == 1);
    CHECK(std::get<Copy>(copies[0]).island == 1);
    CHECK(std::get<Copy>(copies[0]).individual.id == bred(9).id);
}

TEST_CASE("pollination: sends all individuals if the island has fewer than requested") {
    const Population population = on_one_island(ExchangeKind::pollination, 2, 3);

    CHECK(plan(always(ExchangeKind::pollination, 7), population).size() == 3);
}
