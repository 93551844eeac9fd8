#include "finch/base/error.hpp"
#include "finch/search/gene.hpp"
#include "finch/search/individual.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <set>

using namespace finch;
using namespace finch::search;

namespace {

const Gene units{"units", IntGene{-2, 3}};
const Gene rate{"rate", RealGene{1e-4, 1e-2, Scale::log}};
const Gene share{"share", RealGene{-1, 3, Scale::linear}};
const Gene activation{"activation", ChoiceGene{{"relu", "sigmoid", "tanh"}}};
const Space four_kinds{{units, rate, share, activation}};
constexpr int draws = 20000;

}  // namespace

TEST_CASE("a random whole number takes every value of its range equally often, including both bounds") {
    RandomStream random(1, Purpose::test);
    std::vector<int> counts(6);

    for (int i = 0; i < draws; ++i) {
        const double value = random_value(units, random);
        REQUIRE(value == std::round(value));
        ++counts.at(static_cast<std::size_t>(value + 2));
    }

    for (const int count : counts) {
        CHECK(count == doctest::Approx(draws / 6.0).epsilon(0.08));  // 4.4 standard deviations
    }
}

TEST_CASE("a random value of a gene with a log scale is uniform in its logarithm") {
    RandomStream random(2, Purpose::test);
    int below_middle = 0;
    int below_quarter = 0;

    for (int i = 0; i < draws; ++i) {
        const double value = random_value(rate, random);
        below_middle += value < 1e-3 ? 1 : 0;
        below_quarter += value < std::pow(10, -3.5) ? 1 : 0;
    }

    CHECK(below_middle == doctest::Approx(draws / 2.0).epsilon(0.03));
    CHECK(below_quarter == doctest::Approx(draws / 4.0).epsilon(0.05));
}

TEST_CASE("a random value of a gene with a linear scale is uniform") {
    RandomStream random(3, Purpose::test);
    double sum = 0;
    double squares = 0;

    for (int i = 0; i < draws; ++i) {
        const double value = random_value(share, random);
        sum += value;
        squares += value * value;
    }

    const double mean = sum / draws;
    CHECK(std::abs(mean - 1) < 0.035);
    CHECK(squares / draws - mean * mean == doctest::Approx(16.0 / 12).epsilon(0.03));
}

TEST_CASE("random genomes are elements of their space") {
    RandomStream random(4, Purpose::test);

    const std::int64_t most = std::int64_t{1} << 53U;
    const Space wide{
        {{"steps", IntGene{-most, most, Scale::linear, 3}}, {"rate", RealGene{1e-300, 1e300, Scale::log}}}};
    for (int i = 0; i < 1000; ++i) {
        CHECK(four_kinds.contains(random_genome(four_kinds, random)));
        CHECK(wide.contains(random_genome(wide, random)));
    }
    CHECK(to_unit(wide.genes[1], 1) == doctest::Approx(0.5));
}

TEST_CASE("contains: false for values that are out of range, fractional or NaN, and for a wrong length") {
    const double nan = std::numeric_limits<double>::quiet_NaN();

    CHECK(four_kinds.contains({3, 1e-2, -1, 2}));
    CHECK_FALSE(four_kinds.contains({4, 1e-3, 0, 0}));
    CHECK_FALSE(four_kinds.contains({0.5, 1e-3, 0, 0}));
    CHECK_FALSE(four_kinds.contains({0, 1e-5, 0, 0}));
    CHECK_FALSE(four_kinds.contains({0, nan, 0, 0}));
    CHECK_FALSE(four_kinds.contains({nan, 1e-3, 0, 0}));
    CHECK_FALSE(four_kinds.contains({0, 1e-3, 3.01, 0}));
    CHECK_FALSE(four_kinds.contains({0, 1e-3, 0, 3}));
    CHECK_FALSE(four_kinds.contains({0, 1e-3, 0, -1}));
    CHECK_FALSE(four_kinds.contains({0, 1e-3, 0, 1.5}));
    CHECK_FALSE(four_kinds.contains({0, 1e-3, 0}));
}

TEST_CASE("index_of finds a gene by its name, and returns -1 for an unknown name") {
    CHECK(four_kinds.index_of("units") == 0);
    CHECK(four_kinds.index_of("activation") == 3);
    CHECK(four_kinds.index_of("momentum") == -1);
}

TEST_CASE("value_text writes values as in a configuration file") {
    CHECK(value_text(units, -2) == "-2");
    CHECK(value_text(rate, 0.00316) == "0.00316");
    CHECK(value_text(share, 1) == "1");
    for (const char* text : {"-0.00001", "0.0000012345", "1.0e-07", "1.5e-07", "1.0e+20", "123456789012"}) {
        CHECK(value_text(rate, std::stod(text)) == text);  // PyYAML takes 1e-07 for a word
    }
    CHECK(value_text(activation, 1) == "sigmoid");
    CHECK(genome_text(four_kinds, {3, 0.001, 0.5, 0}) == "units = 3, rate = 0.001, share = 0.5, activation = relu");
}

TEST_CASE("parse_value: the text of a random value gives back the same bits") {
    RandomStream random(5, Purpose::test);

    for (int i = 0; i < 1000; ++i) {
        for (const Gene& gene : four_kinds.genes) {
            const double value = random_value(gene, random);
            CHECK(parse_value(gene, value_text(gene, value)) == value);
        }
    }
}

TEST_CASE("parse_value: a value that is not allowed throws an error with the gene's name") {
    CHECK_THROWS_WITH_AS((void)parse_value(units, "4"), "gene units: \"4\" is not a whole number in [-2, 3]",
                         ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_value(rate, "nan"), "gene rate: \"nan\" is not a number in [0.0001, 0.01]",
                         ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_value(activation, "rilu"),
                         "gene activation: \"rilu\" is not one of relu, sigmoid, tanh", ConfigError);
    CHECK_THROWS_AS((void)parse_value(units, "1.5"), ConfigError);
    CHECK_THROWS_AS((void)parse_value(units, "1 "), ConfigError);
    CHECK_THROWS_AS((void)parse_value(rate, ""), ConfigError);
    CHECK_THROWS_AS((void)parse_value(rate, "1e-3x"), ConfigError);
}

TEST_CASE("reserved_columns: each name occurs once, and id, loss, epochs, outcome and device are reserved") {
    const auto& columns = reserved_columns();

    CHECK(std::set<std::string>(columns.begin(), columns.end()).size() == columns.size());
    for (const char* name : {"id", "loss", "epochs", "outcome", "device"}) {
        CHECK(std::count(columns.begin(), columns.end(), name) == 1);
    }
}
