#include "finch/search/initial_design.hpp"

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

InitialDesign with(Start start, std::uint32_t points, std::vector<Guess> guesses = {}) {
    InitialDesign initial_design;
    initial_design.space = begun;
    initial_design.guesses = std::move(guesses);
    initial_design.start = start;
    initial_design.points = points;
    return initial_design;
}

}  // namespace

TEST_CASE("InitialDesign: a guess is used in canonical form, and its missing values are random") {
    const InitialDesign initial_design = with(Start::random, 0, {{0.25, 1.0, 0.6, {}}, {{}, 0.0, {}, {}}});
    std::map<double, int> momenta;
    std::vector<double> xs;

    for (std::uint32_t i = 0; i < 4000; ++i) {
        RandomStream random(1, Purpose::breeding, i);
        const Offspring first = initial_design.open(0, 0, random);
        const Offspring second = initial_design.open(1, 0, random);
        CHECK(first.genome == Genome{0.25, 1, 0, 7});
        CHECK(first.bred_by == Operator::given);
        CHECK(second.genome[1] == 0);
        ++momenta[second.genome[2]];
        xs.push_back(second.genome[0]);
    }

    CHECK(misfit(momenta, {{0, 0.25}, {0.3, 0.25}, {0.6, 0.25}, {0.9, 0.25}}) < 1);
    CHECK(distance_from_uniform(xs) < 1);
}

TEST_CASE("InitialDesign: sobol or latin points follow the guesses; a second attempt at a point is random") {
    for (const Start start : {Start::sobol, Start::latin}) {
        const InitialDesign initial_design = with(start, 16, {{0.25, 1.0, 0.6, {}}});
        std::set<int> shares;
        int sgd = 0;
        for (std::uint32_t initial_point = 1; initial_point < initial_design.initial_points(); ++initial_point) {
            RandomStream random(1, Purpose::breeding, initial_point);
            const Offspring one = initial_design.open(initial_point, 0, random);
            CHECK(one.bred_by == Operator::random);
            CHECK(begun.contains(one.genome));
            CHECK(one.genome == canonical(begun, one.genome));
            shares.insert(static_cast<int>(one.genome[0] * 16));
            sgd += one.genome[1] == 0 ? 1 : 0;

            RandomStream other(2, Purpose::breeding, initial_point);
            CHECK(initial_design.open(initial_point, 0, other).genome == one.genome);
            CHECK(initial_design.open(initial_point, 1, other).genome != one.genome);
        }
        CHECK(shares.size() == 16);
        CHECK(sgd == 8);
    }
}

TEST_CASE("points_of: returns the number of individuals that the propagator needs first, minus the guesses") {
    CHECK(points_of(Start::sobol, 16, 0) == 16);
    CHECK(points_of(Start::latin, 16, 5) == 11);
    CHECK(points_of(Start::latin, 16, 20) == 0);
    CHECK(points_of(Start::random, 16, 0) == 0);
}
