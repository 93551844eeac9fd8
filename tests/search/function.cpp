#include "finch/search/function.hpp"

#include "finch/base/error.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <numbers>

using namespace finch;
using namespace finch::search;

namespace {

using std::numbers::pi;

double value(const std::string& name, const std::vector<double>& x) {
    return FunctionInstance(find_function(name), static_cast<int>(x.size())).value(x);
}

std::vector<double> all(std::size_t dimensions, double value) {
    return std::vector<double>(dimensions, value);
}

}  // namespace

TEST_CASE("functions: six of Propulate's, with Propulate's default dimensions") {
    const std::vector<std::pair<std::string, int>> expected{{"sphere", 2},    {"rosenbrock", 2}, {"rastrigin", 20},
                                                            {"griewank", 10}, {"schwefel", 10},  {"birastrigin", 30}};

    CHECK(functions().size() == expected.size());
    for (const auto& [name, dimensions] : expected) {
        CHECK(find_function(name).default_dimensions == dimensions);
    }
}

TEST_CASE("each function has its known minimum at the known point") {
    const std::vector<std::pair<std::string, std::vector<double>>> places{{"sphere", {0, 0}},
                                                                          {"rosenbrock", {1, 1}},
                                                                          {"rastrigin", all(20, 0)},
                                                                          {"griewank", all(10, 0)},
                                                                          {"schwefel", all(10, 420.96874635998203)},
                                                                          {"birastrigin", all(30, 2.5)}};
    for (const auto& [name, place] : places) {
        CAPTURE(name);
        CHECK(std::abs(value(name, place)) < 1e-9);
    }
}

TEST_CASE("functions have their minimum 0 at the optimum, and no random point below, for any number of dimensions") {
    RandomStream random(1, Purpose::test);
    for (const Function& function : functions()) {
        for (const int dimensions : {1, 2, 7, 100, 500, function.default_dimensions}) {
            if (dimensions < function.least_dimensions) {
                CHECK_THROWS_AS(FunctionInstance(function, dimensions), ConfigError);
                continue;
            }
            CAPTURE(function.name);
            CAPTURE(dimensions);
            const FunctionInstance instance(function, dimensions);
            const Space space = function_space(function, dimensions);
            const std::vector<double> optimum(instance.optimum().begin(), instance.optimum().end());
            CHECK(space.contains(optimum));
            CHECK(std::abs(instance.value(optimum)) < 1e-10);
            for (int i = 0; i < 2000; ++i) {
                REQUIRE(instance.value(random_genome(space, random)) >= 0);
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
}

TEST_CASE("birastrigin has the two funnels of Propulate's variant of Lunacek's function") {
    const double second = -2.9835874121078256;  // −√(5.25 / s), s = 1 − √(1 / (2√50 − 8.2)) = 0.58976877
    const auto ripples = [](double xi) { return 300 * (1 - std::cos(2 * pi * (xi - 2.5))); };

    CHECK(value("birastrigin", all(30, second)) == doctest::Approx(30 + ripples(second)));
    CHECK(value("birastrigin", all(30, 0)) == doctest::Approx(187.5 + 600));
    CHECK(value("birastrigin", all(30, -1)) == doctest::Approx(99.61546252636494 + 600));
    CHECK(value("birastrigin", all(30, 3)) == doctest::Approx(7.5 + 600));
    CHECK(find_function("birastrigin").source.find("Propulate") != std::string::npos);
}

TEST_CASE("function_space: returns a space with the genes and bounds of the function") {
    const Space sphere = function_space(find_function("sphere"), 7);
    CHECK(sphere.size() == 7);
    CHECK(sphere.genes[6] == Gene{"x6", RealGene{-5.12, 5.12, Scale::linear}});
}

TEST_CASE("functions: an unsupported number of dimensions throws ConfigError") {
    CHECK_THROWS_WITH_AS((void)function_space(find_function("rosenbrock"), 1),
                         "rosenbrock has 2 dimensions or more, not 1", ConfigError);
    CHECK_THROWS_AS((void)function_space(find_function("sphere"), 0), ConfigError);
    CHECK_THROWS_AS((void)function_space(find_function("birastrigin"), 1), ConfigError);
    CHECK_THROWS_AS((void)value("rosenbrock", {1}), ConfigError);
    CHECK(std::isfinite(value("birastrigin", {0, 0})));
}

TEST_CASE("find_function: an unknown name throws an error that lists all functions, the most similar first") {
    CHECK_THROWS_WITH_AS((void)find_function("rastrgin"),
                         doctest::Contains("there is no function \"rastrgin\"; there are rastrigin, birastrigin, "),
                         ConfigError);
    CHECK_THROWS_WITH_AS((void)find_function("x"), doctest::Contains("sphere"), ConfigError);
}
