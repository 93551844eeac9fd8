#include "search/propagators/additive_model.hpp"

#include "finch/search/individual.hpp"

#include "simulated_search.hpp"

#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numbers>

using namespace finch;
using namespace finch::search;

namespace {

constexpr std::size_t numbers_count = 8;

/// Returns a space of eight numbers and a choice.
Space numbers_and_choice() {
    Space space = reals(numbers_count, 0, 1);
    space.genes.push_back({"activation", ChoiceGene{{"relu", "tanh", "sigmoid", "gelu"}}});
    return space;
}

double best_number(std::size_t gene) {
    return 0.15 + 0.1 * static_cast<double>(gene);
}

/// A sum over the genes, with six local minima per number. The third option is the best, and its neighbours are the
/// worst.
double sum_of_waves(const Space& space, const UnitGenome& point) {
    double sum = std::array{0.5, 1.0, 0.0, 1.0}.at(
        static_cast<std::size_t>(from_unit(space.genes[numbers_count], point[numbers_count])));
    for (std::size_t gene = 0; gene < numbers_count; ++gene) {
        const double distance = point[gene] - best_number(gene);
        sum += distance * distance + 0.1 * (1 - std::cos(6 * 2 * std::numbers::pi * distance));
    }
    return sum;
}

void take_random(AdditiveModel& model, const Space& space, int count, double scale, std::uint64_t seed) {
    RandomStream random(seed, Purpose::test);
    for (int i = 0; i < count; ++i) {
        const UnitGenome point = to_unit(space, random_genome(space, random));
        model.take(point, scale * sum_of_waves(space, point));
    }
}

}  // namespace

TEST_CASE("additive model: finds the best of many local minima of every gene in one random generation") {
    const Space space = numbers_and_choice();
    AdditiveModel model;
    RandomStream random(2, Purpose::test);

    take_random(model, space, 1000, 1, 1);

    REQUIRE(model.is_ready());
    for (std::size_t gene = 0; gene < numbers_count; ++gene) {
        CAPTURE(gene);
        CHECK(std::abs(model.draw(space, gene, 200, random) - best_number(gene)) < 0.05);
    }
    CHECK(from_unit(space.genes[numbers_count], model.draw(space, numbers_count, 50, random)) == 2);
}

TEST_CASE("additive model: a fit is due after every 64 results, and depends only on the results until then") {
    const Space space = numbers_and_choice();
    AdditiveModel drawn_often;
    AdditiveModel drawn_once;
    const auto draw = [&](const AdditiveModel& model) {
        RandomStream random(3, Purpose::test);
        return model.draw(space, 0, 16, random);
    };
    take_random(drawn_once, space, 63, 1, 4);
    CHECK(!drawn_once.is_ready());
    take_random(drawn_once, space, 1, 1, 5);
    CHECK(drawn_once.is_ready());
    drawn_often = drawn_once;

    const double first = draw(drawn_often);
    take_random(drawn_often, space, 63, 1, 6);
    const double before = draw(drawn_often);
    take_random(drawn_often, space, 200, 1, 7);
    const double last = draw(drawn_often);
    take_random(drawn_once, space, 63, 1, 6);
    take_random(drawn_once, space, 200, 1, 7);

    CHECK(before == first);
    CHECK(last != first);
    CHECK(draw(drawn_once) == last);
}

TEST_CASE("additive model: accepts results without a loss, equal losses and the largest losses") {
    const Space space = numbers_and_choice();
    for (const double scale : {0.0, 1e299, 1e-300}) {
        CAPTURE(scale);
        AdditiveModel model;
        RandomStream random(8, Purpose::test);

        take_random(model, space, 1000, scale, 9);
        for (int i = 0; i < 100; ++i) {
            model.take(random_point(space.size(), random), std::numeric_limits<double>::infinity());
        }

        for (int i = 0; i < 50; ++i) {
            const double value = model.draw(space, 1, 8, random);
            CHECK((value >= 0 && value <= 1));
        }
        CHECK((scale == 0 || std::abs(model.draw(space, 1, 200, random) - best_number(1)) < 0.1));
    }
    AdditiveModel failures;
    RandomStream random(10, Purpose::test);
    for (int i = 0; i < 500; ++i) {
        failures.take(random_point(space.size(), random), least_pruned);
    }
    CHECK(!failures.is_ready());
}
