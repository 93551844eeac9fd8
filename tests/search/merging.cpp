#include "finch/search/population.hpp"

#include "search/samples.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <doctest/doctest.h>
#include <variant>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

constexpr std::array kinds{ExchangeKind::none, ExchangeKind::migration, ExchangeKind::pollination};

struct Membership {
    Id id;
    std::int32_t island;
};
struct Register {
    Id id;
    Home home;
};
/// Anything that a population can merge.
using Arrival = std::variant<Individual, Register, Membership, Record>;

bool merge(Population& population, const Arrival& arrival) {
    if (const auto* individual = std::get_if<Individual>(&arrival)) {
        return population.merge(*individual);
    }
    if (const auto* one = std::get_if<Register>(&arrival)) {
        return population.merge(one->id, one->home);
    }
    if (const auto* one = std::get_if<Membership>(&arrival)) {
        return population.merge_membership(one->id, one->island);
    }
    return population.merge(std::get<Record>(arrival));
}

Population merged(ExchangeKind kind, int islands, const std::vector<Arrival>& arrivals) {
    Population population(kind, islands);
    for (const Arrival& arrival : arrivals) {
        merge(population, arrival);
    }
    return population;
}

/// Merges all data of `from` into `to`.
void merge_all(Population& to, const Population& from) {
    for (const auto& [id, home] : from.homes()) {
        to.merge(id, home);
    }
    for (const auto& [id, island] : from.memberships()) {
        to.merge_membership(id, island);
    }
    for (const auto& [id, individual] : from.individuals()) {
        to.merge(individual);
    }
}

/// Returns `count` random records about `ids` individuals on five islands: starts, contradicting outcomes, moves and
/// copies. Some registers and memberships belong to individuals that never arrive.
std::vector<Arrival> random_arrivals(RandomStream& random, std::uint32_t ids, int count) {
    std::vector<Arrival> arrivals;
    for (int i = 0; i < count; ++i) {
        const auto number = static_cast<std::uint32_t>(1 + random.below(ids));
        const auto birth = static_cast<std::int32_t>(number % 5);
        const auto island = static_cast<std::int32_t>(random.below(5));
        Individual individual = bred(number, birth);
        if (random.uniform() < 0.7) {
            individual.outcome = static_cast<Outcome>(random.uniform() < 0.7 ? 1 : 1 + random.below(6));
            individual.loss = random.uniform() < 0.1 ? Individual::not_measured : static_cast<double>(random.below(4));
            individual.epochs = static_cast<std::int32_t>(random.below(3));
        }
        const Home home{static_cast<std::uint32_t>(random.below(4)), static_cast<std::int32_t>(random.below(3)),
                        island};
        switch (random.below(5)) {
            case 0:
                arrivals.emplace_back(individual);
                break;
            case 1:
                arrivals.emplace_back(Register{individual.id, home});
                break;
            case 2:
                arrivals.emplace_back(Membership{individual.id, island});
                break;
            case 3:
                arrivals.emplace_back(Record{Move{individual, home}});
                break;
            default:
                arrivals.emplace_back(Record{Copy{individual, island}});
                break;
        }
    }
    return arrivals;
}

/// Returns the active set by its definition, computed from the population's data and not from its indexes.
std::vector<Id> active_by_definition(const Population& population, int island) {
    const int islands = population.islands();
    std::vector<const Individual*> members;
    std::size_t born = 0;
    for (const auto& [id, individual] : population.individuals()) {
        if (!individual.ranks_by_loss()) {
            continue;
        }
        const bool was_born_here = individual.island % islands == island;
        born += was_born_here ? 1 : 0;
        bool is_here = was_born_here;
        if (population.kind() == ExchangeKind::migration && population.homes().contains(id)) {
            is_here = population.homes().at(id).island % islands == island;
        }
        for (int raw = island; raw < 5 && population.kind() == ExchangeKind::pollination; raw += islands) {
            is_here = is_here || population.memberships().contains({id, raw});
        }
        if (is_here) {
            members.push_back(&individual);
        }
    }
    std::sort(members.begin(), members.end(), [](const auto* a, const auto* b) { return better(*a, *b); });
    if (population.kind() == ExchangeKind::pollination) {
        members.resize(std::min(members.size(), born));
    }
    return ids(members);
}

void check_against_definition(const Population& population) {
    std::size_t finished = 0;
    std::vector<Id> unfinished;
    for (const auto& [id, individual] : population.individuals()) {
        finished += individual.finished_training() ? 1 : 0;
        if (!individual.finished_training()) {
            unfinished.push_back(id);
        }
    }
    CHECK(population.finished() == finished);
    CHECK(ids(population.unfinished()) == unfinished);
    for (int island = 0; island < population.islands(); ++island) {
        const auto expected = active_by_definition(population, island);
        CHECK(ids(population.best(island, 1000)) == expected);
        CHECK(population.active(island) == expected.size());
        const auto two =
            std::vector(expected.begin(),
                        expected.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, expected.size())));
        CHECK(ids(population.best(island, 2)) == two);
    }
}

}  // namespace

TEST_CASE("merge: order and repetition do not matter, for every kind and number of islands") {
    RandomStream random(1, Purpose::test);

    // FINCH_TEST_INTERLEAVINGS sets the number of interleavings, default 240. Each round tests twelve kinds of
    // population.
    const char* const wanted = std::getenv("FINCH_TEST_INTERLEAVINGS");
    const int rounds = wanted == nullptr ? 20 : std::max(1, std::atoi(wanted) / 12);
    for (int round = 0; round < rounds; ++round) {
        const auto arrivals = random_arrivals(random, 12, 60);
        for (const ExchangeKind kind : kinds) {
            for (const int islands : {1, 2, 3, 5}) {
                const Population expected = merged(kind, islands, arrivals);
                std::vector<Arrival> shuffled;
                for (const std::uint32_t i : random.permutation(60)) {
                    shuffled.push_back(arrivals[i]);
                    shuffled.push_back(arrivals[random.below(60)]);
                }

                Population other = merged(kind, islands, shuffled);

                CHECK(other == expected);
                check_against_definition(other);
                for (const Arrival& again : arrivals) {
                    CHECK_FALSE(merge(other, again));
                }
                CHECK(other == expected);
            }
        }
    }
}

TEST_CASE("merge: two records give the same result in both orders, and a repeated record changes nothing") {
    RandomStream random(2, Purpose::test);
    const auto arrivals = random_arrivals(random, 2, 40);

    for (const ExchangeKind kind : kinds) {
        for (const Arrival& a : arrivals) {
            for (const Arrival& b : arrivals) {
                CHECK(merged(kind, 2, {a, b}) == merged(kind, 2, {b, a}));
                CHECK(merged(kind, 2, {a, b, a}) == merged(kind, 2, {a, b}));
            }
        }
    }
}

TEST_CASE("merge: populations can be merged into each other in any grouping and order") {
    RandomStream random(3, Purpose::test);

    for (const ExchangeKind kind : kinds) {
        const Population a = merged(kind, 3, random_arrivals(random, 8, 20));
        const Population b = merged(kind, 3, random_arrivals(random, 8, 20));
        const Population c = merged(kind, 3, random_arrivals(random, 8, 20));

        Population ab_then_c = a;
        merge_all(ab_then_c, b);
        merge_all(ab_then_c, c);
        Population bc = b;
        merge_all(bc, c);
        Population a_then_bc = a;
        merge_all(a_then_bc, bc);
        Population c_then_a = c;
        merge_all(c_then_a, a);
        merge_all(c_then_a, b);

        CHECK(ab_then_c == a_then_bc);
        CHECK(ab_then_c == c_then_a);
    }
}

TEST_CASE("operator==: populations with any difference in data, kind or islands are not equal") {
    const std::vector<Arrival> arrivals{evaluated(1, 0.5), Register{bred(1).id, {1, 0, 1}}, Membership{bred(1).id, 1}};
    const Population population = merged(ExchangeKind::migration, 2, arrivals);

    CHECK(population == merged(ExchangeKind::migration, 2, arrivals));
    CHECK_FALSE(population == merged(ExchangeKind::pollination, 2, arrivals));
    CHECK_FALSE(population == merged(ExchangeKind::migration, 3, arrivals));
    for (std::size_t left_out = 0; left_out < arrivals.size(); ++left_out) {
        auto fewer = arrivals;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(left_out));
        CHECK_FALSE(population == merged(ExchangeKind::migration, 2, fewer));
    }
    auto other_loss = arrivals;
    other_loss[0] = evaluated(1, 0.25);
    CHECK_FALSE(population == merged(ExchangeKind::migration, 2, other_loss));
}
