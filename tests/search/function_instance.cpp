#include "finch/base/error.hpp"
#include "finch/search/function.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::search;

namespace {

FunctionInstance instance_of(const std::string& name, int dimensions, const Transform& transform) {
    return {find_function(name), dimensions, transform};
}

Genome point_in_bounds(const FunctionInstance& instance, RandomStream& random) {
    return random_genome(function_space(instance.function(), instance.dimensions()), random);
}

}  // namespace

TEST_CASE("a shifted or rotated instance has the function's minimum at its own optimum") {
    for (const Function& function : functions()) {
        for (const int dimensions : {2, 9, function.default_dimensions}) {
            for (const auto& [shift, rotate] : {std::pair{false, true}, {true, false}, {true, true}}) {
                const FunctionInstance instance(function, dimensions, {shift, rotate, 3});
                CAPTURE(function.name);
                CAPTURE(dimensions);
                CHECK(std::abs(instance.value(instance.optimum())) < 1e-10);
            }
        }
    }
}

TEST_CASE("no random point of a shifted and rotated instance has a value below the minimum") {
    RandomStream random(1, Purpose::test);
    for (const Function& function : functions()) {
        CAPTURE(function.name);
        for (const std::int64_t instance : {1, 2, 3}) {
            const FunctionInstance moved(function, function.default_dimensions, {true, true, instance});
            for (int i = 0; i < 1000; ++i) {
                REQUIRE(moved.value(point_in_bounds(moved, random)) >= 0);
            }
        }
    }
}

TEST_CASE("a shifted optimum is in the inner 80 % of the box, at a different point for each instance") {
    for (const std::int64_t number : {1, 2, 77}) {
        const FunctionInstance rosenbrock = instance_of("rosenbrock", 500, {true, true, number});

        const auto [least, most] = std::minmax_element(rosenbrock.optimum().begin(), rosenbrock.optimum().end());
        CHECK(*least >= -0.8 * 2.048);
        CHECK(*most <= 0.8 * 2.048);
        CHECK(*least < -0.7 * 2.048);
        CHECK(*most > 0.7 * 2.048);
    }
    const auto place = [](std::int64_t number) { return instance_of("sphere", 2, {true, false, number}).optimum()[0]; };
    CHECK(place(1) != place(2));
    CHECK(place(1) == place(1));
}

TEST_CASE("the rotation is orthogonal and uniform: its entries have mean 0 and variance 1/n") {
    for (const int n : {1, 2, 20, 200}) {
        const FunctionInstance instance = instance_of("sphere", n, {false, true, 5});
        const auto r = instance.rotation();
        const auto size = static_cast<std::size_t>(n);
        REQUIRE(r.size() == size * size);
        double worst = 0;
        double sum = 0;
        for (std::size_t i = 0; i < size; ++i) {
            for (std::size_t k = 0; k < size; ++k) {
                double product = 0;
                for (std::size_t j = 0; j < size; ++j) {
                    product += r[i * size + j] * r[k * size + j];
                }
                worst = std::max(worst, std::abs(product - (i == k ? 1 : 0)));
                sum += r[i * size + k];
            }
        }
        CHECK(worst < 1e-13);
        CHECK(std::abs(sum) < 5 * std::sqrt(n));  // the sum has n² entries of variance 1/n
    }
    double square = 0;
    for (std::int64_t number = 1; number <= 4000; ++number) {
        square += std::pow(instance_of("sphere", 3, {false, true, number}).rotation()[5], 2) / 4000;
    }
    CHECK(square == doctest::Approx(1.0 / 3).epsilon(0.06));
}

TEST_CASE("a shift moves the function with its optimum; a rotation changes rastrigin, but not sphere") {
    RandomStream random(2, Purpose::test);
    const FunctionInstance plain = instance_of("rastrigin", 4, {});
    const FunctionInstance moved = instance_of("rastrigin", 4, {true, false, 9});
    const FunctionInstance turned_sphere = instance_of("sphere", 6, {true, true, 9});
    const FunctionInstance turned = instance_of("rastrigin", 6, {true, true, 9});
    const FunctionInstance still = instance_of("rastrigin", 6, {true, false, 9});
    for (int i = 0; i < 20; ++i) {
        const Genome x = point_in_bounds(plain, random);
        Genome there = x;
        Genome y = point_in_bounds(turned_sphere, random);
        double distance_squared = 0;
        for (std::size_t k = 0; k < 4; ++k) {
            there[k] += moved.optimum()[k];
        }
        for (std::size_t k = 0; k < 6; ++k) {
            distance_squared += std::pow(y[k] - turned_sphere.optimum()[k], 2);
        }

        CHECK(moved.value(there) == doctest::Approx(plain.value(x)));
        CHECK(turned_sphere.value(y) == doctest::Approx(distance_squared));
        CHECK(turned.value(y) != doctest::Approx(still.value(y)));
        CHECK(turned.value(y) <= distance_squared + 6 * 20);
        CHECK(turned.value(y) >= distance_squared);
    }
}

TEST_CASE("an instance without shift and rotation equals the function") {
    const FunctionInstance rastrigin = instance_of("rastrigin", 30, {.instance = 8});
    const std::vector<double> x(30, 0.3);

    CHECK(rastrigin.value(x) == find_function("rastrigin").value(x));
    CHECK(rastrigin.rotation().empty());
    CHECK_THROWS_WITH_AS((void)rastrigin.value(std::vector<double>(3)), "rastrigin has 30 dimensions here, not 3",
                         ConfigError);
}

TEST_CASE("the pretended duration of an evaluation depends only on the seed and the individual") {
    const PretendedDuration lognormal{60, 0.5};
    std::vector<double> seconds;
    double log_squares = 0;
    for (std::uint32_t i = 1; i <= 4001; ++i) {
        seconds.push_back(lognormal.seconds(1, Id::make(0, 0, i)));
        log_squares += std::pow(std::log(seconds.back() / 60), 2) / 4001;
    }
    std::nth_element(seconds.begin(), seconds.begin() + 2000, seconds.end());
    CHECK(seconds[2000] == doctest::Approx(60).epsilon(0.04));
    CHECK(std::sqrt(log_squares) == doctest::Approx(0.5).epsilon(0.05));
    CHECK(PretendedDuration{3, 0}.seconds(1, Id::make(0, 0, 1)) == 3);
    CHECK(PretendedDuration{0, 2}.seconds(1, Id::make(0, 0, 1)) == 0);
}
