#pragma once

#include "finch/base/random.hpp"

#include "support/reference.hpp"

#include <algorithm>
#include <cmath>

namespace finch::testing {

/// Standard normal numbers, rounded to float so that both sides start from the same bits.
inline Values normals(std::size_t count, std::uint32_t stream) {
    RandomStream random(5, Purpose::test, 0, stream);
    Values values(count);
    for (double& value : values) {
        value = static_cast<double>(static_cast<float>(random.normal()));
    }
    return values;
}

inline std::vector<float> floats(const Values& values) {
    std::vector<float> copy(values.size());
    std::transform(values.begin(), values.end(), copy.begin(), [](double value) { return static_cast<float>(value); });
    return copy;
}

/// The largest difference, as a share of the largest entry expected.
template <class Found>
double worst(const Found& found, const Values& expected) {
    double largest = 1e-30;
    double difference = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        const double gap = std::abs(static_cast<double>(found[i]) - expected[i]);
        difference = gap <= difference ? difference : gap;  // a NaN stays
    }
    return difference / largest;
}

inline constexpr backend::Activation activations[] = {backend::Activation::none, backend::Activation::relu,
                                                      backend::Activation::sigmoid, backend::Activation::tanh};

}  // namespace finch::testing
