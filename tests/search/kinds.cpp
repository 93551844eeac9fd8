#include "finch/base/error.hpp"
#include "finch/search/gene.hpp"

#include "search/fit.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace finch;
using namespace finch::search;

namespace {

const Gene tenths{"tenths", RealGene{0, 0.5, Scale::linear, 0.1}};
const Gene odd{"odd", RealGene{-1, 1, Scale::linear, 0.3}};
const Gene log_rate{"rate", RealGene{1e-4, 1e-2, Scale::log}};
const Gene real_share{"share", RealGene{-1, 3}};
const Gene eights{"eights", IntGene{8, 30, Scale::linear, 8}};
const Gene channels{"channels", IntGene{1, 64, Scale::log}};
const Gene wide{"wide", IntGene{4, 64, Scale::log, 4}};
const Gene size_word{"size", ChoiceGene{{"s", "m", "l", "xl"}, true}};
const Gene word_gene{"word", ChoiceGene{{"a", "b", "c"}}};
const Gene frozen{"frozen", RealGene{0.9, 0.9}};
const Gene frozen_whole{"frozen_whole", IntGene{3, 3}};
const Gene frozen_word{"frozen_word", ChoiceGene{{"relu"}}};
const std::vector<Gene> all_kinds{tenths, odd,       log_rate,  real_share, eights,       channels,
                                  wide,   size_word, word_gene, frozen,     frozen_whole, frozen_word};
constexpr int many = 20000;

template <class Draw>
std::map<double, int> counted(const Draw& draw) {
    std::map<double, int> counts;
    for (int i = 0; i < many; ++i) {
        ++counts[draw()];
    }
    return counts;
}

std::map<double, double> evenly(const std::vector<double>& values) {
    std::map<double, double> probabilities;
    for (const double value : values) {
        probabilities[value] = 1.0 / static_cast<double>(values.size());
    }
    return probabilities;
}

/// Returns the probabilities of whole numbers if their logarithm is uniform. The cell of a number ends halfway to its
/// neighbours.
std::map<double, double> evenly_in_logarithm(double low, double last, double step) {
    std::map<double, double> probabilities;
    const double all_of_it = std::log((last + step / 2) / (low - step / 2));
    for (double value = low; value <= last; value += step) {
        probabilities[value] = std::log((value + step / 2) / (value - step / 2)) / all_of_it;
    }
    return probabilities;
}

const std::vector<double> values_of_tenths{0, 0.1, 0.2, 0.3, 0.4, 0.5};
const std::vector<double> values_of_odd{-1, -0.7, -0.4, -0.1, 0.2, 0.5, 0.8};

}  // namespace

TEST_CASE("a real gene with a step takes the values low + k·step equally often, without rounding errors in text") {
    RandomStream random(1, Purpose::test);

    CHECK(misfit(counted([&] { return random_value(tenths, random); }), evenly(values_of_tenths)) < 1);
    CHECK(misfit(counted([&] { return random_value(odd, random); }), evenly(values_of_odd)) < 1);
    CHECK(value_text(tenths, from_unit(tenths, 0.6)) == "0.3");
    CHECK(value_count(tenths) == 6);
    CHECK(value_count(odd) == 7);
    for (const auto& [high, step] : {std::pair(0.7, 0.07), {3e-20, 1e-20}, {1.2, 0.3}, {9e22, 1e22}, {1e5, 0.1}}) {
        const Gene gene{"through_zero", RealGene{-high, high, Scale::linear, step}};
        CHECK(value_text(gene, snap(gene, step * 1e-9)) == "0");
        CHECK(value_text(gene, snap(gene, -step * 1.1)) == value_text(gene, -step));
    }
}

TEST_CASE("a whole number with a step takes the values low + k·step up to high equally often") {
    RandomStream random(2, Purpose::test);

    CHECK(misfit(counted([&] { return random_value(eights, random); }), evenly({8, 16, 24})) < 1);
}

TEST_CASE("a whole number with a log scale is uniform in its logarithm, then rounded") {
    RandomStream random(3, Purpose::test);

    CHECK(misfit(counted([&] { return random_value(channels, random); }), evenly_in_logarithm(1, 64, 1)) < 1);
    CHECK(misfit(counted([&] { return random_value(wide, random); }), evenly_in_logarithm(4, 64, 4)) < 1);
}

TEST_CASE("from_unit maps uniform numbers to random values, and to_unit maps random real values to uniform numbers") {
    RandomStream random(4, Purpose::test);
    const auto drawn = [&](const Gene& gene) { return counted([&] { return from_unit(gene, random.uniform()); }); };

    CHECK(misfit(drawn(tenths), evenly(values_of_tenths)) < 1);
    CHECK(misfit(drawn(eights), evenly({8, 16, 24})) < 1);
    CHECK(misfit(drawn(channels), evenly_in_logarithm(1, 64, 1)) < 1);
    CHECK(misfit(drawn(word_gene), evenly({0, 1, 2})) < 1);
    for (const Gene& gene : {log_rate, real_share}) {
        std::vector<double> encoded;
        for (int i = 0; i < many; ++i) {
            encoded.push_back(to_unit(gene, random_value(gene, random)));
        }
        CHECK(distance_from_uniform(encoded) < 1);
    }
}

TEST_CASE("from_unit is the inverse of to_unit, and maps numbers outside [0, 1] to the nearest bound") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    RandomStream random(5, Purpose::test);
    for (const Gene& gene : all_kinds) {
        for (int i = 0; i < 500; ++i) {
            const double value = random_value(gene, random);
            const double u = to_unit(gene, value);
            CHECK(0 <= u);
            CHECK(u <= 1);
            CHECK(from_unit(gene, u) == doctest::Approx(value).epsilon(1e-12));
            CHECK((!value_count(gene) || from_unit(gene, u) == value));
        }
        for (const double beyond : {-1.0, 0.0, nan}) {
            CHECK(from_unit(gene, beyond) == doctest::Approx(first_value(gene)).epsilon(1e-12));
        }
        CHECK(Space{{gene}}.contains({from_unit(gene, 7)}));
    }
    CHECK(to_unit(log_rate, 1e-3) == doctest::Approx(0.5));
    CHECK(to_unit(real_share, 1) == 0.5);
    CHECK(to_unit(word_gene, 1) == 0.5);
    CHECK(to_unit(eights, 8) == doctest::Approx(1.0 / 6));
    CHECK(to_unit(frozen, 0.9) == 0.5);
    CHECK(from_unit(real_share, 1) == 3);
    CHECK(from_unit(channels, 1) == 64);
}

TEST_CASE("snap: gives the nearest allowed value, and the first value for NaN") {
    CHECK(snap(tenths, 0.26) == 0.3);
    CHECK(snap(tenths, 9) == 0.5);
    CHECK(snap(odd, 0.9) == 0.8);
    CHECK(snap(real_share, 4) == 3);
    CHECK(snap(real_share, 0.123) == 0.123);
    CHECK(snap(eights, 19) == 16);
    CHECK(snap(eights, 21) == 24);
    CHECK(snap(eights, 30) == 24);
    CHECK(snap(word_gene, 1.4) == 1);
    CHECK(snap(word_gene, -3) == 0);
    CHECK(snap(eights, std::numeric_limits<double>::quiet_NaN()) == 8);
    CHECK(snap(eights, std::numeric_limits<double>::infinity()) == 24);
}

TEST_CASE("random whole numbers of the widest range are allowed values") {
    const std::int64_t exact = std::int64_t{1} << 53;
    const Gene widest{"widest", IntGene{-exact, exact}};
    RandomStream random(9, Purpose::test);

    for (int i = 0; i < 1000; ++i) {
        CHECK(Space{{widest}}.contains({random_value(widest, random)}));
    }
    CHECK(Space{{widest}}.contains({static_cast<double>(exact - 1)}));
}

TEST_CASE("is_fixed: a gene with one value is fixed, and every operation keeps its value") {
    RandomStream random(6, Purpose::test);
    for (const Gene& gene : {frozen, frozen_whole, frozen_word}) {
        CHECK(is_fixed(gene));
        CHECK(random_value(gene, random) == first_value(gene));
        CHECK(mutate_value(gene, first_value(gene), random) == first_value(gene));
        CHECK(move_value(gene, first_value(gene), 0.5) == first_value(gene));
    }
    for (const Gene& gene : {tenths, log_rate, eights, channels, word_gene}) {
        CHECK_FALSE(is_fixed(gene));
    }
}

TEST_CASE("mutate_value: half of the mutations of an ordered choice go to a neighbour, the others to any value") {
    RandomStream random(7, Purpose::test);

    CHECK(misfit(counted([&] { return mutate_value(size_word, 1, random); }),
                 {{0, 0.125 + 0.25}, {1, 0.125}, {2, 0.125 + 0.25}, {3, 0.125}}) < 1);
    CHECK(misfit(counted([&] { return mutate_value(size_word, 3, random); }),
                 {{0, 0.125}, {1, 0.125}, {2, 0.125 + 0.5}, {3, 0.125}}) < 1);
    CHECK(misfit(counted([&] { return mutate_value(word_gene, 1, random); }), evenly({0, 1, 2})) < 1);
}

TEST_CASE("move_value: moves by a share of the range, on the gene's scale, and by at least one value") {
    CHECK(move_value(real_share, 0, 0.25) == 1);
    CHECK(move_value(real_share, 0, 5) == 3);
    CHECK(move_value(log_rate, 1e-3, 0.25) == doctest::Approx(std::pow(10, -2.5)));
    CHECK(move_value(tenths, 0.2, 0.4) == 0.4);
    CHECK(move_value(tenths, 0.2, 0.001) == 0.3);
    CHECK(move_value(tenths, 0.2, -0.001) == 0.1);
    CHECK(move_value(tenths, 0.5, 0.001) == 0.5);
    CHECK(move_value(tenths, 0.2, 0) == 0.2);
    CHECK(move_value(channels, 8, 0.5) == 64);
    CHECK(move_value(channels, 2, 0.17) == 4);
    CHECK(move_value(eights, 8, 0.01) == 16);
    CHECK(move_value(size_word, 1, 0.01) == 2);
    CHECK(move_value(word_gene, 1, 0.9) == 1);
}

TEST_CASE("parse_value: a value between two steps is refused, but rounding errors of a step are accepted") {
    CHECK(parse_value(tenths, "0.3") == 0.3);
    CHECK(parse_value(tenths, "0.30000000000000004") == 0.3);
    CHECK_THROWS_WITH_AS((void)parse_value(tenths, "0.25"),
                         "gene tenths: \"0.25\" is not a number in [0, 0.5] in steps of 0.1", ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_value(eights, "12"),
                         "gene eights: \"12\" is not a whole number in [8, 30] in steps of 8", ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_value(frozen, "1"), "gene frozen: \"1\" is not 0.9, its only value", ConfigError);
    CHECK_FALSE(Space{{tenths}}.contains({0.25}));
    CHECK_FALSE(Space{{eights}}.contains({12}));
    for (const double value : values_of_tenths) {
        CHECK(Space{{tenths}}.contains({value}));
    }
}

TEST_CASE("random values of every gene kind are allowed, and value_text writes them without loss") {
    RandomStream random(8, Purpose::test);
    for (const Gene& gene : all_kinds) {
        for (int i = 0; i < 300; ++i) {
            const double value = random_value(gene, random);
            CHECK(Space{{gene}}.contains({value}));
            CHECK(parse_value(gene, value_text(gene, value)) == value);
        }
    }
}
