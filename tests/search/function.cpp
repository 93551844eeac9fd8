#include "finch/search/function.hpp"

#include "finch/base/error.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <numbers>

using namespace finch;
using namespace finch::search;

namespace {

using std::numbers::pi;

double value(const std::string& name, const std::vector<double>& x, std::uint64_t id = 0) {
    RandomStream noise(1, Purpose::function_noise, id);
    return evaluate(find_function(name), x, noise);
}

std::vector<double> all(std::size_t dimensions, double value) {
    return std::vector<double>(dimensions, value);
}

}  // namespace

TEST_CASE("functions: contains Propulate's fourteen functions with Propulate's default dimensions, and two more") {
    const std::vector<std::pair<std::string, int>> expected{
        {"sphere", 2},       {"rosenbrock", 2}, {"step", 5},      {"quartic", 30},
        {"rastrigin", 20},   {"griewank", 10},  {"schwefel", 10}, {"bisphere", 30},
        {"birastrigin", 30}, {"bukin_n6", 2},   {"eggcrate", 2},  {"himmelblau", 2},
        {"keane", 2},        {"leon", 2},       {"ackley", 20},   {"ellipsoid", 20}};

    CHECK(functions().size() == expected.size());
    for (const auto& [name, dimensions] : expected) {
        CHECK(find_function(name).default_dimensions == dimensions);
    }
}

TEST_CASE("each function has its known minimum at the known point") {
    const std::vector<std::pair<std::string, std::vector<double>>> places{
        {"sphere", {0, 0}},         {"rosenbrock", {1, 1}},        {"step", all(5, -5.12)},
        {"rastrigin", all(20, 0)},  {"griewank", all(10, 0)},      {"schwefel", all(10, 420.96874635998203)},
        {"bisphere", all(30, 2.5)}, {"birastrigin", all(30, 2.5)}, {"bukin_n6", {-10, 1}},
        {"eggcrate", {0, 0}},       {"himmelblau", {3, 2}},        {"keane", {1.393249075325585, 0}},
        {"leon", {1, 1}},           {"ackley", all(20, 0)},        {"ellipsoid", all(20, 0)}};
    for (const auto& [name, place] : places) {
        CAPTURE(name);
        const double minimum = minimum_of(find_function(name), static_cast<int>(place.size()));
        CHECK(std::abs(value(name, place) - minimum) < 1e-9);
    }
    CHECK(find_function("keane").minimum == doctest::Approx(-0.673667521146855));
    CHECK(value("himmelblau", {-2.805118, 3.131312}) == doctest::Approx(0).epsilon(1e-6));
    CHECK(value("keane", {0, 1.393249075325585}) == doctest::Approx(-0.673667521146855));
}

TEST_CASE("optimum_of: returns the point of the minimum for every allowed number of dimensions") {
    for (const Function& function : functions()) {
        for (const int dimensions : {1, 2, 3, 17, 100, 500}) {
            if (dimensions < function.least_dimensions || (!function.any_dimensions && dimensions != 2)) {
                CHECK_THROWS_AS((void)minimum_of(function, dimensions), ConfigError);
                CHECK_THROWS_AS((void)optimum_of(function, dimensions), ConfigError);
                continue;
            }
            CAPTURE(function.name);
            CAPTURE(dimensions);
            const std::vector<double> optimum = optimum_of(function, dimensions);
            CHECK(function_space(function, dimensions).contains(optimum));
            CHECK(std::abs(evaluate_without_noise(function, optimum) - minimum_of(function, dimensions)) < 1e-10);
        }
    }
    CHECK(minimum_of(find_function("step"), 5) == -25);
    CHECK(minimum_of(find_function("step"), 40) == -200);
    CHECK(minimum_of(find_function("schwefel"), 40) == 0);
}

TEST_CASE("no random point has a value below the minimum") {
    RandomStream random(1, Purpose::test);
    for (const Function& function : functions()) {
        for (const int dimensions : {2, 7, function.default_dimensions}) {
            if (!function.any_dimensions && dimensions != 2) {
                continue;
            }
            CAPTURE(function.name);
            const Space space = function_space(function, dimensions);
            for (int i = 0; i < 2000; ++i) {
                const Genome x = random_genome(space, random);
                REQUIRE(evaluate(function, x, random) >= minimum_of(function, dimensions));
            }
        }
    }
}

TEST_CASE("functions return the values that were computed on paper") {
    CHECK(value("sphere", {1, 2}) == 5);
    CHECK(value("rosenbrock", {-1, 1}) == 4);
    CHECK(value("rosenbrock", {1.5, 1}) == doctest::Approx(100 * 1.5625 + 0.25));
    CHECK(value("rosenbrock", {0, 0, 0}) == 2);
    CHECK(value("rosenbrock", {0, 1, 2}) == doctest::Approx(100 + 1 + 100));
    CHECK(value("rastrigin", all(20, 0.5)) == doctest::Approx(20 * 20.25));
    CHECK(value("griewank", {pi, 0}) == doctest::Approx(2 + pi * pi / 4000));
    CHECK(value("griewank", {0, pi * std::sqrt(2)}) == doctest::Approx(2 + 2 * pi * pi / 4000));
    CHECK(value("schwefel", all(10, 0)) == doctest::Approx(4189.828872724337));
    CHECK(value("schwefel", {pi * pi / 4}) == doctest::Approx(418.9828872724337 - pi * pi / 4));
    CHECK(value("schwefel", {-pi * pi / 4}) == doctest::Approx(418.9828872724337 + pi * pi / 4));
    CHECK(value("bukin_n6", {-5, 0}) == doctest::Approx(50.05));
    CHECK(value("eggcrate", {pi / 2, 0}) == doctest::Approx(pi * pi / 4 + 25));
    CHECK(value("himmelblau", {0, 0}) == 170);
    CHECK(value("keane", {0, 0}) == 0);
    CHECK(value("keane", {pi / 4, pi / 4}) == doctest::Approx(0));
    CHECK(value("keane", {pi / 2, 0}) == doctest::Approx(-2 / pi));
    CHECK(value("leon", {0, 1}) == 101);
    CHECK(value("leon", {2, 8}) == 1);
    CHECK(value("ackley", all(20, 0)) == 0);
    CHECK(value("ackley", {1, 1, 1}) == doctest::Approx(20 - 20 * std::exp(-0.2)));
    CHECK(value("ackley", {0.5}) == doctest::Approx(20 - 20 * std::exp(-0.1) + std::exp(1) - std::exp(-1)));
    CHECK(value("ellipsoid", {3, 0, 0}) == 9);
    CHECK(value("ellipsoid", {0, 2, 0}) == doctest::Approx(4e3));
    CHECK(value("ellipsoid", {0, 0, -1}) == doctest::Approx(1e6));
    CHECK(value("ellipsoid", {3}) == 9);
}

TEST_CASE("step truncates toward zero, as in Propulate") {
    CHECK(value("step", {1.9, -1.9, 0.5, -0.5, 0}) == 0);
    CHECK(value("step", {2.1, 0, 0, 0, 0}) == 2);
    CHECK(value("step", {-2.9, 0, 0, 0, 0}) == -2);
}

TEST_CASE("bisphere and birastrigin have the two funnels of Propulate's variant of Lunacek's functions") {
    const double second = -2.9835874121078256;  // −√(5.25 / s), s = 1 − √(1 / (2√50 − 8.2)) = 0.58976877

    CHECK(value("bisphere", all(30, second)) == doctest::Approx(30));
    CHECK(value("bisphere", all(30, 0)) == doctest::Approx(187.5));
    CHECK(value("bisphere", all(30, -1)) == doctest::Approx(99.61546252636494));
    CHECK(value("birastrigin", all(30, -1)) == doctest::Approx(99.61546252636494 + 600));
    CHECK(value("birastrigin", all(30, 3)) == doctest::Approx(7.5 + 600));
    CHECK(find_function("bisphere").source.find("Propulate") != std::string::npos);
}

TEST_CASE("quartic: the noise is the absolute value of the sum of one standard normal per term") {
    double sum = 0;
    double largest = 0;
    for (std::uint64_t i = 0; i < 4000; ++i) {
        const double at_origin = value("quartic", all(30, 0), i);
        CHECK(at_origin >= 0);
        sum += at_origin;
        largest = std::max(largest, at_origin);
    }

    CHECK(sum / 4000 == doctest::Approx(std::sqrt(30 * 2 / pi)).epsilon(0.05));  // 4 standard deviations
    CHECK(largest < 6 * std::sqrt(30));
    CHECK(value("quartic", all(30, 1), 7) == doctest::Approx(465).epsilon(0.06));
    CHECK(value("quartic", all(30, 1), 7) == value("quartic", all(30, 1), 7));
    CHECK(value("quartic", all(30, 1), 7) != value("quartic", all(30, 1), 8));
}

TEST_CASE("quartic can be evaluated without its noise; the other functions have no noise") {
    CHECK(evaluate_without_noise(find_function("quartic"), all(30, 1)) == 465);
    CHECK(evaluate_without_noise(find_function("quartic"), all(3, 2)) == 16 * 6);
    for (const Function& function : functions()) {
        CAPTURE(function.name);
        const std::vector<double> x = all(static_cast<std::size_t>(function.default_dimensions), 0.3);
        CHECK(function.has_noise == (function.name == "quartic"));
        CHECK((value(function.name, x) == evaluate_without_noise(function, x)) != function.has_noise);
    }
}

TEST_CASE("function_space: returns a space with the genes and bounds of the function") {
    const Space bukin = function_space(find_function("bukin_n6"), 2);
    CHECK(bukin.genes ==
          std::vector<Gene>{{"x0", RealGene{-15, -5, Scale::linear}}, {"x1", RealGene{-3, 3, Scale::linear}}});

    const Space sphere = function_space(find_function("sphere"), 7);
    CHECK(sphere.size() == 7);
    CHECK(sphere.genes[6] == Gene{"x6", RealGene{-5.12, 5.12, Scale::linear}});
}

TEST_CASE("functions: an unsupported number of dimensions throws ConfigError") {
    CHECK_THROWS_WITH_AS((void)function_space(find_function("keane"), 3), "keane has 2 dimensions, not 3", ConfigError);
    CHECK_THROWS_AS((void)function_space(find_function("sphere"), 0), ConfigError);
    CHECK_THROWS_AS((void)function_space(find_function("rosenbrock"), 1), ConfigError);
    CHECK_THROWS_AS((void)function_space(find_function("bisphere"), 1), ConfigError);
    CHECK_THROWS_AS((void)value("leon", {1}), ConfigError);
    CHECK(std::isfinite(value("bisphere", {0, 0})));
}

TEST_CASE("find_function: an unknown name throws an error that lists all functions, the most similar first") {
    CHECK_THROWS_WITH_AS((void)find_function("rastrgin"),
                         doctest::Contains("there is no function \"rastrgin\"; there are rastrigin, birastrigin, "),
                         ConfigError);
    CHECK_THROWS_WITH_AS((void)find_function("x"), doctest::Contains("keane"), ConfigError);
}
