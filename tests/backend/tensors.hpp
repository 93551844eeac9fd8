#pragma once

#include "finch/base/random.hpp"

#include "support/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace finch {

/// Returns the activations for which `takes` returns true.
template <class Takes>
std::vector<backend::Activation> activations_that(Takes takes) {
    std::vector<backend::Activation> found;
    for (std::size_t i = 0; i < words_of(backend::Activation{}).size(); ++i) {
        if (const auto one = static_cast<backend::Activation>(i); takes(one)) {
            found.push_back(one);
        }
    }
    return found;
}
inline std::vector<backend::Activation> all_activations() {
    return activations_that([](auto) { return true; });
}
/// Returns the activations that can be fused into another operation.
inline std::vector<backend::Activation> fused_activations() {
    return activations_that([](auto one) { return !needs_its_input(one); });
}

/// Returns normal numbers that float represents exactly: both sides of a comparison start from the same values.
inline reference::Tensor normal_tensor(RandomStream& random, std::size_t size, double scale = 1) {
    reference::Tensor result(size);
    for (double& value : result) {
        value = static_cast<double>(static_cast<float>(scale * random.normal()));
    }
    return result;
}

/// Rounds to the nearest bfloat16 (7 bits of mantissa, ties to even), by integer arithmetic on the bits of the float.
inline float to_bfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t half = 0x7fffU + (bits >> 16 & 1U);
    return std::bit_cast<float>((bits + half) & 0xffff0000U);
}

inline std::size_t input_size(const backend::ConvolutionShape& s) {
    return static_cast<std::size_t>(s.batch * s.height * s.width * s.channels_in);
}
inline std::size_t input_size(const backend::PoolingShape& s) {
    return static_cast<std::size_t>(s.batch * s.height * s.width * s.channels);
}
inline std::size_t input_size(const backend::MeanShape& s) {
    return static_cast<std::size_t>(s.batch * s.pixels * s.channels);
}
inline std::size_t input_size(const backend::LayerNormShape& s) {
    return static_cast<std::size_t>(s.batch * s.pixels * s.channels);
}
inline std::size_t input_size(const backend::LinearShape& s) {
    return static_cast<std::size_t>(s.batch * s.height * s.width * s.channels);
}
inline std::size_t input_size(const backend::ActivationShape& s) {
    return static_cast<std::size_t>(s.count);
}
inline std::size_t input_size(const backend::AddShape& s) {
    return static_cast<std::size_t>(s.count);
}
inline std::size_t input_size(const backend::BatchNormShape& s) {
    return static_cast<std::size_t>(s.batch * s.pixels * s.channels);
}
inline std::size_t input_size(const backend::DropoutShape& s) {
    return static_cast<std::size_t>(s.batch * s.features);
}
inline std::size_t parameter_count(const backend::ConvolutionShape& s) {
    return static_cast<std::size_t>(s.weights() + s.channels_out);
}
inline std::size_t parameter_count(const backend::LinearShape& s) {
    return static_cast<std::size_t>(s.units * (s.channels * s.height * s.width + 1));
}
inline std::size_t parameter_count(const backend::BatchNormShape& s) {
    return static_cast<std::size_t>(2 * s.channels);
}
inline std::size_t parameter_count(const backend::LayerNormShape& s) {
    return static_cast<std::size_t>(2 * s.channels);
}
inline std::size_t parameter_count(const backend::MeanShape&) {
    return 0;
}
inline std::size_t parameter_count(const backend::PoolingShape&) {
    return 0;
}
inline std::size_t parameter_count(const backend::ActivationShape&) {
    return 0;
}

/// Returns the largest difference divided by the largest entry of `expected`. Returns infinity if the sizes differ or a
/// value is not finite.
template <class Values>
double difference(const Values& actual, const reference::Tensor& expected) {
    double top = 0;
    double apart = actual.size() == expected.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
        const double here = std::abs(static_cast<double>(actual[i]) - expected[i]);
        apart = std::isfinite(here) ? std::max(apart, here) : INFINITY;
        top = std::max(top, std::abs(expected[i]));
    }
    return top > 0 ? apart / top : apart;
}

}  // namespace finch
