#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "backend/samples.hpp"

#include <doctest/doctest.h>

namespace finch::testing {
namespace {

/// d (Σ w·f(x, p)) / d v by central differences, for every entry of `v`, which f reads.
template <class Function>
Values differences(Values& v, const Function& weighted_sum) {
    constexpr double h = 1e-5;
    Values slopes(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) {
        const double kept = v[i];
        v[i] = kept + h;
        const double above = weighted_sum();
        v[i] = kept - h;
        const double below = weighted_sum();
        v[i] = kept;
        slopes[i] = (above - below) / (2 * h);
    }
    return slopes;
}

template <class Shape>
void compare(const Shape& shape) {
    const Sizes n = sizes(shape);
    Values x = normals(n.x, 1);
    Values parameters = normals(n.parameters, 2);
    const Values weights = normals(n.y, 3);
    const auto weighted_sum = [&] {
        const Values y = forward(shape, x, parameters);
        double sum = 0;
        for (std::size_t i = 0; i < y.size(); ++i) {
            sum += weights[i] * y[i];
        }
        return sum;
    };

    const Grads grads = backward(shape, x, parameters, weights);

    CHECK(worst(grads.x, differences(x, weighted_sum)) < 1e-6);
    if (n.parameters > 0) {
        CHECK(worst(grads.parameters, differences(parameters, weighted_sum)) < 1e-6);
    }
}

}  // namespace

TEST_CASE("the reference's gradients are the finite differences of its values") {
    for (const backend::Activation activation : activations) {
        compare(backend::ConvolutionShape{2, 5, 4, 3, 2, 3, 1, 1, 1, activation});
        compare(backend::ConvolutionShape{1, 6, 7, 1, 3, 2, 2, 0, 1, activation});
        compare(backend::LinearShape{2, 2, 3, 2, 4, activation});
        compare(backend::ActivationShape{20, activation});
    }
    for (const backend::Pooling kind : {backend::Pooling::max, backend::Pooling::average}) {
        compare(backend::PoolingShape{kind, 2, 5, 6, 3, 2, 2, 0});
        compare(backend::PoolingShape{kind, 1, 5, 5, 2, 3, 2, 1});
    }
}

TEST_CASE("the reference's loss has the gradient of its finite differences") {
    Values logits = normals(12, 4);
    const std::vector<std::int32_t> labels{2, 0, 1};
    const std::vector<float> weights{1, 0, 1};

    const Loss loss = softmax_cross_entropy(logits, labels, weights, 4, 0.5);
    const Values expected =
        differences(logits, [&] { return 0.5 * softmax_cross_entropy(logits, labels, weights, 4, 0.5).sum; });

    CHECK(worst(loss.grad, expected) < 1e-6);
}

TEST_CASE("the reference gives what can be computed by hand") {
    const backend::ConvolutionShape two_by_two{1, 2, 2, 1, 1, 2, 1, 0, 0};
    const backend::LinearShape image{1, 1, 2, 2, 1};

    CHECK(forward(two_by_two, {1, 2, 3, 4}, {10, 20, 30, 40, 5}) == Values{1 * 10 + 2 * 20 + 3 * 30 + 4 * 40 + 5});
    // x is (w0c0, w0c1, w1c0, w1c1); the weights' columns are (c0w0, c0w1, c1w0, c1w1)
    CHECK(forward(image, {1, 2, 3, 4}, {1000, 100, 10, 1, 0}) == Values{1 * 1000 + 3 * 100 + 2 * 10 + 4 * 1});
    CHECK(forward(backend::PoolingShape{backend::Pooling::average, 1, 1, 1, 1, 3, 1, 1}, {9}, {}) == Values{1});
}

}  // namespace finch::testing
