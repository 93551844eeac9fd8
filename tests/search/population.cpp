#include "finch/search/population.hpp"

#include "search/samples.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <doctest/doctest.h>
#include <limits>
#include <memory>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

constexpr std::array kinds{ExchangeKind::none, ExchangeKind::migration, ExchangeKind::pollination};

}  // namespace

TEST_CASE("Population: a copy has its own individuals, independent of the original") {
    for (const ExchangeKind kind : kinds) {
        auto original = std::make_unique<Population>(kind, 2);
        original->merge(Record{Copy{evaluated(1, 0.5), 1}});
        original->merge(evaluated(2, 0.7, 1));
        Population copy = *original;
        CHECK(copy == *original);

        original->merge(evaluated(3, 0.1));
        const auto* in_original = original->find(bred(1).id);
        CHECK(copy.find(bred(1).id) != in_original);
        original.reset();

        CHECK(ids(copy.best(0, 9)) == std::vector{bred(1).id});
        const Population moved = std::move(copy);
        CHECK(moved.best(0, 1).at(0)->loss == 0.5);
    }
}

TEST_CASE("Population: a started individual is unfinished until its result arrives; a late start changes nothing") {
    Population population(ExchangeKind::none, 1);

    CHECK(population.merge(Record{Started{bred(1)}}));
    CHECK(population.finished() == 0);
    CHECK(ids(population.unfinished()) == std::vector{bred(1).id});
    CHECK(population.active(0) == 0);
    CHECK(population.merge(Record{Result{evaluated(1, 0.5)}}));
    CHECK_FALSE(population.merge(Record{Started{bred(1)}}));

    CHECK(population.finished() == 1);
    CHECK(population.size() == 1);
    CHECK(population.unfinished().empty());
    CHECK(population.best()->loss == 0.5);
}

TEST_CASE("Population: a failed individual counts as finished, but it is never active") {
    Population population(ExchangeKind::pollination, 2);
    population.merge(ended(1, Outcome::failed, -1));
    population.merge(evaluated(2, Individual::not_measured));
    population.merge(ended(3, Outcome::diverged, 0));

    CHECK(population.finished() == 3);
    CHECK(population.active(0) == 0);
    CHECK(population.best(0, 5).empty());
    CHECK(population.best() == nullptr);
}

TEST_CASE("Population: pruned individuals are active, ranked after all complete trainings") {
    Population population(ExchangeKind::none, 1);
    population.merge(pruned(1, 1, 0.1));
    CHECK(population.best()->id == bred(1).id);
    CHECK_FALSE(population.best()->is_complete());

    population.merge(evaluated(2, 0.9));
    population.merge(pruned(3, 2, 0.5));

    CHECK(population.active(0) == 3);
    CHECK(ids(population.best(0, 3)) == std::vector{bred(2).id, bred(3).id, bred(1).id});
}

TEST_CASE("Population: epochs() counts each epoch once, despite late, repeated and earlier records") {
    const auto after = [](Individual individual, std::int32_t epochs) {
        individual.epochs = epochs;
        return individual;
    };
    Population population(ExchangeKind::none, 2);
    population.merge(after(bred(1), 2));
    population.merge(after(bred(1), 3));
    population.merge(after(bred(1), 2));
    CHECK(population.epochs() == 3);
    CHECK(population.epochs_on(0) == 0);

    population.merge(after(evaluated(1, 0.5), 5));
    population.merge(after(bred(1), 7));
    population.merge(after(pruned(2, 1, 0.5, 1), 1));

    CHECK(population.epochs() == 6);
    CHECK(population.epochs_on(0) == 5);
    CHECK(population.epochs_on(1) == 1);
    CHECK(Population(population).epochs() == 6);
}

TEST_CASE("migration: an individual is active on the island in its register, even if the register arrived first") {
    Population population(ExchangeKind::migration, 3);

    CHECK(population.merge(bred(1).id, Home{1, 0, 2}));
    CHECK(population.merge(evaluated(1, 0.5)));
    CHECK(population.home(bred(1).id) == Home{1, 0, 2});
    CHECK(population.active(0) == 0);
    CHECK(population.active(2) == 1);

    CHECK(population.merge(bred(1).id, Home{2, 0, 1}));
    CHECK_FALSE(population.merge(bred(1).id, Home{1, 9, 2}));
    CHECK(population.active(2) == 0);
    CHECK(ids(population.best(1, 1)) == std::vector{bred(1).id});
}

TEST_CASE("migration: an individual that never moved is on its island of birth, with version 0") {
    Population population(ExchangeKind::migration, 2);
    population.merge(evaluated(1, 0.5, 3));

    CHECK(population.home(bred(1).id) == Home{0, 0, 1});
    CHECK_FALSE(population.merge(bred(1).id, Home{0, 5, 0}));
    CHECK(population.active(1) == 1);
}

TEST_CASE("pollination: a copy displaces the worst individual") {
    Population population(ExchangeKind::pollination, 2);
    population.merge(evaluated(1, 0.9));
    population.merge(evaluated(2, 0.8));
    population.merge(evaluated(3, 0.1, 1));

    population.merge(Record{Copy{evaluated(3, 0.1, 1), 0}});

    CHECK(population.active(0) == 2);
    CHECK(ids(population.best(0, 10)) == std::vector{bred(3).id, bred(2).id});
    CHECK(ids(population.best(1, 10)) == std::vector{bred(3).id});
}

TEST_CASE("pollination: copies do not increase the capacity of an island") {
    Population population(ExchangeKind::pollination, 2);
    population.merge(Record{Copy{evaluated(1, 0.5), 1}});

    CHECK(population.active(1) == 0);
    CHECK(population.best(1, 3).empty());
    population.merge(evaluated(2, 0.7, 1));
    CHECK(ids(population.best(1, 3)) == std::vector{bred(1).id});
}

TEST_CASE("pollination: an individual is a member of its island of birth and of islands with a copy") {
    Population population(ExchangeKind::pollination, 3);
    population.merge(evaluated(1, 0.5, 1));
    population.merge_membership(bred(1).id, 5);

    CHECK_FALSE(population.is_member(bred(1).id, 0));
    CHECK(population.is_member(bred(1).id, 1));
    CHECK(population.is_member(bred(1).id, 2));
    CHECK_FALSE(population.is_member(bred(2).id, 1));
}

TEST_CASE("no exchange: an individual is active only on its island of birth, despite recorded copies and moves") {
    Population population(ExchangeKind::none, 2);
    population.merge(Record{Copy{evaluated(1, 0.5), 1}});
    population.merge(bred(1).id, Home{3, 0, 1});

    CHECK(population.active(0) == 1);
    CHECK(population.active(1) == 0);
}

TEST_CASE("after a restart with fewer islands, members of island i join island i modulo the new number") {
    Population population(ExchangeKind::migration, 2);
    population.merge(evaluated(1, 0.5, 4));
    population.merge(evaluated(2, 0.4, 3));
    population.merge(Record{Move{evaluated(3, 0.3, 0), {1, 0, 7}}});

    CHECK(ids(population.best(0, 9)) == std::vector{bred(1).id});
    CHECK(ids(population.best(1, 9)) == std::vector{bred(3).id, bred(2).id});
    CHECK(population.home(bred(3).id) == Home{1, 0, 1});
}

TEST_CASE("Population: a result with more epochs replaces the old result in all rankings") {
    Individual further = evaluated(1, 0.9);
    further.epochs = 5;
    for (const ExchangeKind kind : kinds) {
        Population population(kind, 2);
        population.merge(evaluated(1, 0.1));
        population.merge(evaluated(2, 0.5));

        population.merge(further);

        CHECK(population.best()->id == bred(2).id);
        CHECK(ids(population.best(0, 9)) == std::vector{bred(2).id, bred(1).id});
        CHECK(population.finished() == 2);
    }
}

TEST_CASE("Population: merge() and best() are nearly as fast with 20 000 individuals as with 1 000") {
    // Measures processor time and takes the minimum of several runs. Other processes on the machine therefore do not
    // count.
    const auto work_each = [](std::uint32_t known) {
        Population population(ExchangeKind::pollination, 2);
        RandomStream random(known, Purpose::test);
        std::uint32_t number = 0;
        const auto add = [&] {
            ++number;
            population.merge(evaluated(number, random.uniform(), static_cast<int>(number % 2)));
        };
        while (number < known) {
            add();
        }
        static_cast<void>(population.best());  // sorts all individuals that are known so far
        constexpr int times = 1000;
        double sum = 0;
        const std::clock_t begin = std::clock();
        for (int i = 0; i < times; ++i) {
            sum += population.best(i % 2, 16).back()->loss;
            add();
        }
        CHECK(sum > 0);
        return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / times;
    };
    double few = std::numeric_limits<double>::infinity();
    double many = few;
    for (int i = 0; i < 7; ++i) {
        few = std::min(few, work_each(1000));
        many = std::min(many, work_each(20000));
    }

    MESSAGE("1 000: ", few * 1e6, " µs, 20 000: ", many * 1e6, " µs");
    CHECK(many < 10 * few);  // a linear scan would take 20 times as long; cache misses cost a factor of two or three
}
