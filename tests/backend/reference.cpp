#include "support/reference.hpp"

#include "backend/tensors.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::backend;
using reference::Tensor;

namespace {

constexpr double difference_tolerance = 1e-6;  ///< relative to the largest entry; slopes() is exact to 1e-9

/// Returns the slopes of `f` at `place` by central differences.
template <class Function>
Tensor slopes(Tensor place, Function f) {
    constexpr double step = 1e-5;
    Tensor result;
    for (double& value : place) {
        const double middle = value;
        value = middle + step;
        const double above = f(place);
        value = middle - step;
        const double below = f(place);
        value = middle;
        result.push_back((above - below) / (2 * step));
    }
    return result;
}

/// Compares reference::backward() with the slopes of Σ r·y. The factors r are random.
template <class Shape>
void check_gradients(const Shape& shape) {
    RandomStream random(11, Purpose::test);
    const Tensor x = normal_tensor(random, input_size(shape));
    const Tensor parameters = normal_tensor(random, parameter_count(shape), 0.3);
    const Tensor y = reference::forward(shape, x, parameters);
    const Tensor r = normal_tensor(random, y.size());
    const auto total = [&](const Tensor& at_x, const Tensor& at_parameters) {
        const Tensor out = reference::forward(shape, at_x, at_parameters);
        double sum = 0;
        for (std::size_t i = 0; i < out.size(); ++i) {
            sum += r[i] * out[i];
        }
        return sum;
    };

    const reference::Gradients gradients = reference::backward(shape, x, parameters, y, r);

    CHECK(difference(gradients.x, slopes(x, [&](const Tensor& place) { return total(place, parameters); })) <
          difference_tolerance);
    CHECK(difference(gradients.parameters, slopes(parameters, [&](const Tensor& place) { return total(x, place); })) <
          difference_tolerance);
}

}  // namespace

TEST_CASE("reference: gradients of a convolution equal central differences") {
    for (const Activation activation : fused_activations()) {
        check_gradients(ConvolutionShape{.batch = 2,
                                         .height = 5,
                                         .width = 4,
                                         .channels_in = 2,
                                         .channels_out = 3,
                                         .kernel = 2,
                                         .padding_after = 1,
                                         .activation = activation});
        check_gradients(ConvolutionShape{.batch = 1,
                                         .height = 6,
                                         .width = 7,
                                         .channels_in = 3,
                                         .channels_out = 2,
                                         .kernel = 3,
                                         .stride = 2,
                                         .padding_before = 1,
                                         .padding_after = 2,
                                         .activation = activation});
    }
}

TEST_CASE("reference: gradients of pooling equal central differences") {
    for (const Pooling kind : {Pooling::max, Pooling::average}) {
        check_gradients(PoolingShape{.kind = kind, .batch = 2, .height = 6, .width = 5, .channels = 3});
        check_gradients(PoolingShape{
            .kind = kind, .batch = 1, .height = 7, .width = 5, .channels = 2, .kernel = 3, .stride = 2, .padding = 1});
    }
}

TEST_CASE("reference: gradients of a linear layer and of activations equal central differences") {
    for (const Activation activation : fused_activations()) {
        check_gradients(
            LinearShape{.batch = 3, .height = 2, .width = 3, .channels = 4, .units = 5, .activation = activation});
    }
    for (const Activation activation : all_activations()) {
        check_gradients(ActivationShape{.count = 40, .activation = activation});
    }
}

TEST_CASE("reference: gradients of batch normalisation equal central differences") {
    for (const Activation activation : {Activation::none, Activation::tanh}) {
        check_gradients(BatchNormShape{.batch = 3, .pixels = 4, .channels = 5, .activation = activation});
    }
}

TEST_CASE("reference: the gradient of the cross-entropy equals central differences") {
    RandomStream random(12, Purpose::test);
    const Tensor logits = normal_tensor(random, 12, 2);
    const std::vector<std::int32_t> labels{2, 0, 3};
    const std::vector<float> weights{1, 0, 1};

    const Tensor gradient = reference::cross_entropy_gradient(logits, labels, weights, 4);

    CHECK(difference(gradient, slopes(logits, [&](const Tensor& place) {
                         return reference::cross_entropy(place, labels, weights, 4);
                     })) < difference_tolerance);
}

TEST_CASE("reference: an even kernel is padded at the bottom and right, and kernels are not mirrored") {
    // x = (1, 2; 3, 4), weight = (1, 10; 100, 1000), one row and one column of zeros at the bottom and right.
    const ConvolutionShape shape{.height = 2, .width = 2, .kernel = 2, .padding_after = 1};

    CHECK(reference::forward(shape, {1, 2, 3, 4}, {1, 10, 100, 1000, 0.5}) == Tensor{4321.5, 402.5, 43.5, 4.5});
}

TEST_CASE("reference: the columns of a linear layer's weight are in CHW order") {
    // x has 1 row, 2 columns and 2 channels. Channel 0 is (1, 3) and channel 1 is (2, 4).
    CHECK(reference::forward(LinearShape{.width = 2, .channels = 2, .units = 1}, {1, 2, 3, 4}, {1, 10, 100, 1000, 0}) ==
          Tensor{4231});
}

TEST_CASE("reference: average pooling divides by the size of the whole window, including padding") {
    CHECK(reference::forward(PoolingShape{.kind = Pooling::average, .height = 2, .width = 2, .padding = 1},
                             {4, 8, 12, 16}, {}) == Tensor{1, 2, 3, 4});
}
