#include "finch/search/share.hpp"

#include "finch/base/random.hpp"

#include "search/known_on.hpp"
#include "search/samples.hpp"

#include <doctest/doctest.h>
#include <set>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

constexpr int island_count = 3;
constexpr std::uint32_t individuals = 300;

/// Returns the population of a run that had five islands and now has three. Some individuals are unfinished, some
/// failed, and many were moved or copied.
Population everything(ExchangeKind kind) {
    RandomStream random(3, Purpose::test);
    Population population(kind, island_count);
    for (std::uint32_t number = 1; number <= individuals; ++number) {
        const auto island = static_cast<std::int32_t>(random.below(5));
        Individual one = number % 30 == 7   ? bred(number, static_cast<std::int32_t>(number / 30 % 5))
                         : number % 11 == 3 ? ended(number, Outcome::failed, 0, island)
                                            : evaluated(number, random.uniform(), island);
        one.curve.resize(2);
        population.merge(one);
        if (one.finished_training() && random.uniform() < 0.3) {
            const auto to = static_cast<std::int32_t>(random.below(5));
            population.merge(one.id, Home{1 + number % 3, 2, to});
            population.merge_membership(one.id, to);
        }
    }
    return population;
}

constexpr ExchangeKind exchange_kinds[] = {ExchangeKind::none, ExchangeKind::migration, ExchangeKind::pollination};

}  // namespace

TEST_CASE("needed_by_islands: a leader receives its island's active and unfinished individuals, and the best of all") {
    for (const ExchangeKind kind : exchange_kinds) {
        const Population all = everything(kind);
        for (int island = 0; island < island_count; ++island) {
            const Population known = known_on(all, island);

            CHECK(known.active(island) == all.active(island));
            CHECK(ids(known.best(island, individuals)) == ids(all.best(island, individuals)));
            std::vector<const Individual*> unfinished = all.unfinished();
            std::erase_if(unfinished, [&](const Individual* one) { return all.island_now(one->island) != island; });
            CHECK_FALSE(unfinished.empty());
            CHECK(ids(known.unfinished()) == ids(unfinished));
            REQUIRE(known.best() != nullptr);
            CHECK(known.best()->id == all.best()->id);
            for (const Individual* member : known.best(island, individuals)) {
                CHECK(known.home(member->id) == all.home(member->id));
                for (int other = 0; other < island_count; ++other) {
                    CHECK(known.is_member(member->id, other) == all.is_member(member->id, other));
                }
            }
        }
    }
}

TEST_CASE("needed_by_islands: a leader receives no other individuals and no learning curves") {
    for (const ExchangeKind kind : exchange_kinds) {
        const Population all = everything(kind);

        const Population known = known_on(all, 1);

        CHECK(known.size() < all.size() * 3 / 4);
        for (const auto& [id, individual] : known.individuals()) {
            CHECK(individual.curve.empty());
        }
    }
}

TEST_CASE("needed_by_islands: later records have the same effect on partial and on full knowledge of an island") {
    for (const ExchangeKind kind : exchange_kinds) {
        Population all = everything(kind);
        Population known = known_on(all, 0);
        const Population before = all;

        for (const auto& [id, individual] : before.individuals()) {
            if (individual.finished_training() && before.home(id).island != 0) {
                all.merge(Move{individual, {9, 1, 0}});
                known.merge(Move{individual, {9, 1, 0}});
            } else {
                all.merge(Result{individual});
                known.merge(Result{individual});
            }
            if (individual.id.value % 2 == 0) {
                all.merge(Copy{individual, 0});
                known.merge(Copy{individual, 0});
            }
        }

        CHECK(known.active(0) == all.active(0));
        CHECK(ids(known.best(0, individuals)) == ids(all.best(0, individuals)));
    }
}
