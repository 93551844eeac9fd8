#include "finch/nn/initialization.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <vector>

using namespace finch;
using namespace finch::nn;

namespace {

const ModelPlan& network() {
    static const ModelPlan plan =
        plan_model({ConvLayer{.channels = 64, .kernel = 3, .activation = backend::Activation::relu},
                    ConvLayer{.channels = 64, .kernel = 3}, FlattenLayer{}, LinearLayer{}},
                   {8, 8, 1}, 10, 1);
    return plan;
}

std::vector<float> initial(std::uint64_t seed, std::uint64_t individual) {
    return initial_state(network(), seed, individual).parameters;
}

std::vector<float> tensor(const std::vector<float>& arena, const TensorInfo& info) {
    const auto first = arena.begin() + info.offset;
    return {first, first + info.size};
}

/// Returns Pearson's correlation coefficient. For n independent pairs its standard deviation is about 1/√n.
double correlation(const std::vector<float>& a, const std::vector<float>& b) {
    double ab = 0;
    double aa = 0;
    double bb = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        ab += static_cast<double>(a[i]) * static_cast<double>(b[i]);
        aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
        bb += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
    return ab / std::sqrt(aa * bb);
}

}  // namespace

TEST_CASE("initial_state: he is normal, scaled by fan-in; xavier is uniform, scaled by both fans; all biases are 0") {
    const auto he = initial_state(network(), 1, 2, Initialization::he).parameters;
    const auto xavier = initial_state(network(), 1, 2, Initialization::xavier).parameters;
    for (const TensorInfo& info : network().tensors) {
        CAPTURE(info.name);
        const auto fan_in = static_cast<double>(info.fan_in);
        const auto n = static_cast<double>(info.size);
        const auto mean_square = [&](const std::vector<float>& arena) {
            const auto values = tensor(arena, info);
            return std::inner_product(values.begin(), values.end(), values.begin(), 0.0) / n;
        };
        if (info.shape.size() == 1) {
            CHECK(mean_square(he) == 0);
            CHECK(mean_square(xavier) == 0);
            continue;
        }
        // The mean square of n random numbers has a relative standard deviation of √(2/n) for normal numbers and
        // √(0.8/n) for uniform numbers. The checks allow five standard deviations.
        CHECK(std::abs(mean_square(he) * fan_in / 2 - 1) < 5 * std::sqrt(2 / n));
        const double kernel = info.shape.size() == 4 ? 9 : 1;
        const double square = 6 / (fan_in + static_cast<double>(info.shape[0]) * kernel);
        CHECK(std::abs(mean_square(xavier) * 3 / square - 1) < 5 * std::sqrt(0.8 / n));
        for (const float value : tensor(xavier, info)) {
            CHECK(std::abs(static_cast<double>(value)) <= std::sqrt(square) * (1 + 1e-7));
        }
    }
}

TEST_CASE("initial_state: PyTorch's default is uniform within ±1 / √fan-in, for weights and biases") {
    const auto arena = initial(1, 2);

    for (const TensorInfo& info : network().tensors) {
        CAPTURE(info.name);
        const double bound = 1 / std::sqrt(static_cast<double>(info.fan_in));
        const auto values = tensor(arena, info);
        const auto n = static_cast<double>(values.size());
        double sum = 0;
        double squares = 0;
        for (const float value : values) {
            CHECK(std::abs(static_cast<double>(value)) <= bound * (1 + 1e-7));
            sum += static_cast<double>(value);
            squares += static_cast<double>(value) * static_cast<double>(value);
        }
        // Uniform numbers in ±b have a mean of 0 with a standard deviation of b/√(3n), and a mean square of b²/3 with a
        // standard deviation of b²·√(4/45)/√n. The checks allow five standard deviations.
        CHECK(std::abs(sum / n) < 5 * bound / std::sqrt(3 * n));
        CHECK(std::abs(squares / n - bound * bound / 3) < 5 * bound * bound * std::sqrt(4.0 / 45.0 / n));
    }
}

TEST_CASE("initial_state: depends on seed and individual") {
    CHECK(initial(1, 2) == initial(1, 2));
    CHECK(initial(1, 2) != initial(1, 3));
    CHECK(initial(1, 2) != initial(2, 2));
}

TEST_CASE("initial_state: individuals, seeds and tensors have uncorrelated weights") {
    const auto weights = tensor(initial(1, 2), network().tensors[2]);
    const double limit = 5 / std::sqrt(static_cast<double>(weights.size()));

    CHECK(std::abs(correlation(weights, tensor(initial(1, 3), network().tensors[2]))) < limit);
    CHECK(std::abs(correlation(weights, tensor(initial(2, 2), network().tensors[2]))) < limit);
    CHECK(std::abs(correlation(weights, tensor(initial(1, 2), network().tensors[4]))) < limit);
}
