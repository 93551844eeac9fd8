// Tests of activations in planes, and of the memory of models.
#include "finch/backend/device.hpp"
#include "finch/nn/model.hpp"

#include "nn/trial.hpp"
#include "support/wrapped_device.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <memory>
#include <vector>

using namespace finch;
using namespace finch::nn;
using backend::Activation;

namespace {

/// A CPU device that prefers planes for each convolution, whatever the instruction set. The default is never.
class PlanesDevice : public test::WrappedDevice {
public:
    [[nodiscard]] bool prefers_planes(const backend::ConvolutionShape& shape) const override {
        return shape.kernel == 3 && shape.stride == 1 && shape.padding_before == 1 && shape.padding_after == 1;
    }
};

ConvLayer convolution(std::int64_t channels, Activation activation = Activation::relu) {
    return {.channels = channels, .kernel = 3, .activation = activation};
}

std::vector<bool> in_planes(const ModelSpec& layers) {
    const ModelPlan plan = with_layouts(PlanesDevice(), plan_model(layers, {9, 12, 2}, 3, 4));
    std::vector<bool> planes;
    for (const Value& value : plan.values) {
        planes.push_back(value.layout == backend::Layout::planes);
    }
    return planes;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0;
    double difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(a[i])));
        difference = std::max(difference, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    }
    return difference / largest;
}

}  // namespace

TEST_CASE("layouts: only values between two convolutions, with relu or no activation, are in planes") {
    const ConvLayer relu = convolution(5);

    CHECK(in_planes({relu, convolution(5, Activation::none), relu, FlattenLayer{}, LinearLayer{}}) ==
          std::vector{false, true, true, false, false});
    CHECK(in_planes({relu, PoolLayer{}, relu, FlattenLayer{}, LinearLayer{}}) ==
          std::vector{false, false, false, false, false});
    CHECK(in_planes({convolution(5, Activation::sigmoid), relu, FlattenLayer{}, LinearLayer{}}) ==
          std::vector{false, false, false, false});
    // The input of a residual block has two readers.
    CHECK(in_planes({relu, BlockLayer{.layers = {relu, relu}}, FlattenLayer{}, LinearLayer{}}) ==
          std::vector{false, false, true, false, false, false});
}

// Without relu, whose derivative at 0 depends on rounding errors.
TEST_CASE("layouts: planes give the logits and gradients of NHWC, for odd and even sizes") {
    const auto linear = [](std::int64_t channels) { return convolution(channels, Activation::none); };
    for (const auto& [height, width] : {std::pair{8, 8}, {9, 12}, {14, 7}, {5, 30}, {6, 9}}) {
        CAPTURE(height);
        CAPTURE(width);
        const ModelPlan plan = plan_model({linear(5), linear(7), BlockLayer{.layers = {linear(6), linear(7)}},
                                           linear(4), FlattenLayer{}, LinearLayer{}},
                                          {height, width, 2}, 3, 4);
        test::Trial planes(plan, 3, std::make_unique<PlanesDevice>());
        test::Trial nhwc(plan, 3, std::make_unique<test::WrappedDevice>());

        const double loss = planes.loss();

        CHECK(loss == doctest::Approx(nhwc.loss()).epsilon(1e-6));
        CHECK(largest_difference(nhwc.grads(), planes.grads()) < 1e-5);
        CHECK(planes.loss() == loss);
    }
}

TEST_CASE("layouts: the memory of a model contains what the kernels keep, for each thread of the device") {
    const ModelPlan plan =
        plan_model({convolution(32), convolution(32), FlattenLayer{}, LinearLayer{}}, {8, 8, 32}, 3, 4);
    const auto one = backend::make_cpu_device(1);
    const auto three = backend::make_cpu_device(3);

    const std::int64_t of_thread = memory_bytes(*one, plan) - plan.bytes;

    // Each transformed kernel has 16 values or more instead of 9, in both packed copies and in the sums.
    CHECK(of_thread >= 2 * 3 * (16 - 9) * 32 * 32 * 4);
    CHECK(memory_bytes(*three, plan) == plan.bytes + 3 * of_thread);
}
