#include "finch/search/beginning.hpp"

#include "search/fit.hpp"

#include <doctest/doctest.h>
#include <set>

using namespace finch;
using namespace finch::search;

namespace {

const Space begun{{{"x", RealGene{0, 1}},
                   {"optimizer", ChoiceGene{{"sgd", "adam"}}},
                   {"momentum", RealGene{0, 0.9, Scale::linear, 0.3}, {{1, {0}}}},
                   {"frozen", IntGene{7, 7}}}};

Beginning with(Start start, std::uint32_t points, std::vector<Guess> guesses = {}) {
    Beginning beginning;
    beginning.space = begun;
    beginning.guesses = std::move(guesses);
    beginning.start = start;
    beginning.points = points;
    return beginning;
}

}  // namespace

TEST_CASE("a guess is taken as it stands, canonical, and what it leaves open is drawn") {
    const Beginning beginning = with(Start::random, 0, {{0.25, 1.0, 0.6, {}}, {{}, 0.0, {}, {}}});
    std::map<double, int> momenta;
    std::vector<double> xs;

    for (std::uint32_t i = 0; i < 4000; ++i) {
        RandomStream random(1, Purpose::breeding, i);
        const Offspring first = beginning.open(0, 0, random);
        const Offspring second = beginning.open(1, 0, random);
        CHECK(first.genome == Genome{0.25, 1, 0, 7});
        CHECK(first.bred_by == Operator::given);
        CHECK(second.genome[1] == 0);
        ++momenta[second.genome[2]];
        xs.push_back(second.genome[0]);
    }

    CHECK(misfit(momenta, {{0, 0.25}, {0.3, 0.25}, {0.6, 0.25}, {0.9, 0.25}}) < 1);
    CHECK(distance_from_uniform(xs) < 1);
}

TEST_CASE("the points of the start come after the guesses, in the genes that are free; a second attempt is random") {
    for (const Start start : {Start::sobol, Start::latin}) {
        const Beginning beginning = with(start, 16, {{0.25, 1.0, 0.6, {}}});
        std::set<int> shares;
        int sgd = 0;
        for (std::uint32_t opening = 1; opening < beginning.openings(); ++opening) {
            RandomStream random(1, Purpose::breeding, opening);
            const Offspring one = beginning.open(opening, 0, random);
            CHECK(one.bred_by == Operator::random);
            CHECK(begun.contains(one.genome));
            CHECK(one.genome == canonical(begun, one.genome));
            shares.insert(static_cast<int>(one.genome[0] * 16));
            sgd += one.genome[1] == 0 ? 1 : 0;

            RandomStream other(2, Purpose::breeding, opening);
            CHECK(beginning.open(opening, 0, other).genome == one.genome);
            CHECK(beginning.open(opening, 1, other).genome != one.genome);
        }
        CHECK(shares.size() == 16);
        CHECK(sgd == 8);
    }
}

TEST_CASE("as many points as the propagator breeds from, less the guesses") {
    CHECK(points_of(Start::sobol, 16, 0) == 16);
    CHECK(points_of(Start::latin, 16, 5) == 11);
    CHECK(points_of(Start::latin, 16, 20) == 0);
    CHECK(points_of(Start::random, 16, 0) == 0);
}
