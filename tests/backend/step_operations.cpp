// Tests of operations that have several inputs, a mode, statistics over the ranks, or random values.
#include "backend/trial.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <vector>

using namespace finch;
using namespace finch::test;

namespace {

/// A batch normalisation with its x, parameters and running statistics, and a step to run it in.
struct Norm {
    Norm(Device& on, const BatchNormShape& of, std::int64_t samples)
        : device(on),
          shape(of),
          rows(static_cast<std::size_t>(samples * of.pixels * of.channels)),
          random(21, Purpose::test),
          step(on, of.batch, samples),
          operation(on.make(of)) {
        x = normal_tensor(random, input_size(shape));
        for (double& value : x) {
            value = static_cast<double>(static_cast<float>(3 + 2 * value));  // far from mean 0 and deviation 1
        }
        parameters = normal_tensor(random, parameter_count(shape));
        running = normal_tensor(random, parameter_count(shape));
        std::for_each(running.begin() + shape.channels, running.end(), [](double& value) { value = std::abs(value); });
        device_x = on_device(device, x);
        device_y = on_device(device, Tensor(x.size(), 77));
        device_parameters = on_device(device, parameters);
        buffers = on_device(device, running);
        operation->pack(device_parameters.data(), buffers.data());
    }

    void forward(Mode mode = Mode::training, GroupSum* group = nullptr) {
        const float* const inputs[] = {device_x.data()};
        operation->forward(step.pass(mode, group), inputs, device_y.data());
    }
    /// real() removes the padding from `values`; padded() appends zeros for the padding.
    [[nodiscard]] Tensor real(Tensor values) const {
        values.resize(rows);
        return values;
    }
    [[nodiscard]] Tensor padded(Tensor values) const {
        values.resize(x.size());
        return values;
    }

    Device& device;
    BatchNormShape shape;
    std::size_t rows;  ///< floats of the samples that are not padding
    RandomStream random;
    TrialStep step;
    std::unique_ptr<Operation> operation;
    Tensor x, parameters, running;
    Buffer device_x, device_y, device_parameters, buffers;
};

/// A GroupSum of two ranks that have equal values: it doubles each sum.
class Doubled : public GroupSum {
public:
    explicit Doubled(Device& device) : device_(device) {}
    void sum(double* values, std::size_t count) override {
        const std::span<float> raw(reinterpret_cast<float*>(values), 2 * count);
        std::vector<double> host(count);
        const std::span<float> host_raw(reinterpret_cast<float*>(host.data()), 2 * count);
        device_.synchronize();
        device_.download(raw.data(), host_raw);
        std::transform(host.begin(), host.end(), host.begin(), [](double value) { return 2 * value; });
        device_.upload(host_raw, raw.data());
        counts.push_back(count);
    }
    std::vector<std::size_t> counts;

private:
    Device& device_;
};

const BatchNormShape shapes[] = {{.batch = 5, .pixels = 1, .channels = 7},
                                 {.batch = 4, .pixels = 30, .channels = 10, .activation = Activation::relu},
                                 {.batch = 2, .pixels = 300, .channels = 3, .momentum = 0.3, .epsilon = 0.1},
                                 {.batch = 6, .pixels = 49, .channels = 64, .activation = Activation::tanh}};

}  // namespace

TEST_CASE("batch_norm: output, running statistics and gradients match the reference; padding is ignored") {
    const auto device = make_device();
    for (const BatchNormShape& shape : shapes)
        for (const std::int64_t samples : {shape.batch, shape.batch - 1}) {
            CAPTURE(shape.channels);
            CAPTURE(samples);
            Norm norm(*device, shape, samples);
            Tensor running = norm.running;
            const Tensor expected = reference::forward(shape, norm.real(norm.x), norm.parameters, &running);

            norm.forward();

            const std::vector<float> y = from_device(*device, norm.device_y);
            CHECK(difference(y, norm.padded(expected)) < tolerance);
            CHECK(difference(from_device(*device, norm.buffers), running) < tolerance);

            const Tensor grad_y = normal_tensor(norm.random, norm.x.size());
            const reference::Gradients gradients = reference::backward(
                shape, norm.real(norm.x), norm.parameters, norm.real(Tensor(y.begin(), y.end())), norm.real(grad_y));
            const Buffer device_grad_y = on_device(*device, grad_y);
            const Buffer grad_x = on_device(*device, Tensor(norm.x.size(), 77));
            const Buffer grad_parameters = on_device(*device, Tensor(norm.parameters.size(), 77));
            const float* const inputs[] = {norm.device_x.data()};
            float* const grads[] = {grad_x.data()};
            norm.operation->backward(norm.step.pass(), inputs, norm.device_y.data(), device_grad_y.data(), grads,
                                     grad_parameters.data());

            CHECK(difference(from_device(*device, grad_x), norm.padded(gradients.x)) < tolerance);
            CHECK(difference(from_device(*device, grad_parameters), gradients.parameters) < tolerance);
        }
}

TEST_CASE("batch_norm: validation uses the running statistics and does not change them") {
    const auto device = make_device();
    for (const BatchNormShape& shape : shapes) {
        Norm norm(*device, shape, shape.batch);

        norm.forward(Mode::validation);

        CHECK(difference(from_device(*device, norm.device_y),
                         reference::normalise(shape, norm.x, norm.parameters, norm.running)) < tolerance);
        CHECK(difference(from_device(*device, norm.buffers), norm.running) < 1e-7);
    }
}

TEST_CASE("batch_norm: the statistics are over the samples of all ranks, with one GroupSum call in forward") {
    const auto device = make_device();
    const BatchNormShape shape{.batch = 3, .pixels = 4, .channels = 5};
    Norm norm(*device, shape, 3);
    Doubled group(*device);
    // Two ranks with this batch equal one rank with the batch twice: the mean and the variance stay the same. Only the
    // divisor of the running variance (n − 1) differs.
    Tensor both = norm.x;
    both.insert(both.end(), norm.x.begin(), norm.x.end());
    Tensor running = norm.running;
    Tensor expected = reference::forward(shape, both, norm.parameters, &running);
    expected.resize(norm.x.size());

    norm.forward(Mode::training, &group);

    CHECK(difference(from_device(*device, norm.device_y), expected) < tolerance);
    CHECK(difference(from_device(*device, norm.buffers), running) < tolerance);
    CHECK(group.counts == std::vector<std::size_t>{norm.operation->forward_sums()});
}

TEST_CASE("add: the output is the activated sum; backward writes a gradient for each input that needs it") {
    const auto device = make_device();
    RandomStream random(22, Purpose::test);
    for (const Activation activation : {Activation::none, Activation::relu, Activation::tanh})
        for (const std::int64_t count : {1, 17, 5000}) {
            const auto size = static_cast<std::size_t>(count);
            const Tensor a = normal_tensor(random, size);
            const Tensor b = normal_tensor(random, size);
            const Tensor grad = normal_tensor(random, size);
            Tensor expected(size);
            for (std::size_t i = 0; i < size; ++i) {
                expected[i] = reference::activate(activation, a[i] + b[i]);
            }
            const Buffer device_a = on_device(*device, a);
            const Buffer device_b = on_device(*device, b);
            const Buffer y = on_device(*device, Tensor(size, 77));
            const auto operation = device->make(AddShape{.count = count, .activation = activation});
            TrialStep step(*device);
            const float* const inputs[] = {device_a.data(), device_b.data()};

            operation->forward(step.pass(), inputs, y.data());

            const std::vector<float> found = from_device(*device, y);
            CHECK(difference(found, expected) < 1e-6);
            Tensor expected_grad(size);
            for (std::size_t i = 0; i < size; ++i) {
                expected_grad[i] = grad[i] * reference::slope(activation, static_cast<double>(found[i]));
            }
            for (const bool both : {true, false}) {
                const Buffer grad_y = on_device(*device, grad);
                const Buffer grad_a = on_device(*device, Tensor(size, 77));
                const Buffer grad_b = on_device(*device, Tensor(size, 77));
                float* const grads[] = {both ? grad_a.data() : nullptr, grad_b.data()};
                operation->backward(step.pass(), inputs, y.data(), grad_y.data(), grads, nullptr);
                CHECK(difference(from_device(*device, grad_b), expected_grad) < 1e-6);
                CHECK(difference(from_device(*device, grad_a), both ? expected_grad : Tensor(size, 77)) < 1e-6);
            }
        }
}

TEST_CASE("accumulate: adds one buffer to another") {
    const auto device = make_device();
    const Buffer from = on_device(*device, std::vector<float>{1, 2, 3});
    const Buffer to = on_device(*device, std::vector<float>{10, 20, 30});

    device->accumulate(from.data(), to.data(), 3);

    CHECK(from_device(*device, to) == std::vector<float>{11, 22, 33});
}

namespace {

/// Returns the output of a dropout of ones, (samples, features).
std::vector<float> dropped(Device& device, const DropoutShape& shape, const StepScalars& scalars,
                           Mode mode = Mode::training) {
    TrialStep step(device, shape.batch, shape.batch, scalars);
    const auto operation = device.make(shape);
    const Buffer x = on_device(device, std::vector<float>(input_size(shape), 1));
    const Buffer y = on_device(device, std::vector<float>(input_size(shape), 77));
    const float* const inputs[] = {x.data()};
    operation->forward(step.pass(mode), inputs, y.data());
    const std::vector<float> forward = from_device(device, y);
    if (mode == Mode::training) {
        // The gradient of ones must have the same mask and scale.
        const Buffer grad_y = on_device(device, std::vector<float>(input_size(shape), 1));
        const Buffer grad_x = on_device(device, std::vector<float>(input_size(shape), 77));
        float* const grads[] = {grad_x.data()};
        operation->backward(step.pass(), inputs, y.data(), grad_y.data(), grads, nullptr);
        CHECK(from_device(device, grad_x) == forward);
    }
    return forward;
}

}  // namespace

TEST_CASE("dropout: values become 0 with probability `rate`, others are scaled; the gradient has the same mask") {
    const auto device = make_device();
    for (const double rate : {0.0, 0.25, 0.9}) {
        const DropoutShape shape{.batch = 8, .features = 2503, .rate = rate};
        const std::vector<float> y = dropped(*device, shape, {.random_key = {3, 4}});
        const auto scale = static_cast<float>(1 / (1 - rate));
        const auto kept = std::count_if(y.begin(), y.end(), [](float value) { return value != 0.0F; });
        for (const float value : y) {
            CHECK((value == 0.0F || value == doctest::Approx(scale)));
        }
        const double n = static_cast<double>(y.size());
        CHECK(std::abs(static_cast<double>(kept) - n * (1 - rate)) <= 5 * std::sqrt(n * rate * (1 - rate)));
        CHECK(dropped(*device, shape, {.random_key = {3, 4}}, Mode::validation) == std::vector<float>(y.size(), 1));
    }
}

TEST_CASE("dropout: the mask depends on key, sample, layer and feature, not on the ranks' shares of the batch") {
    const auto device = make_device();
    const DropoutShape shape{.batch = 6, .features = 37, .rate = 0.5, .layer = 1};
    const std::vector<float> whole = dropped(*device, shape, {.random_key = {3, 4}});
    DropoutShape share = shape;
    share.batch = 2;

    const std::vector<float> last = dropped(*device, share, {.random_key = {3, 4}, .first_sample = 4});
    CHECK(last == std::vector<float>(whole.end() - 2 * 37, whole.end()));

    CHECK(dropped(*device, shape, {.random_key = {3, 5}}) != whole);
    DropoutShape other = shape;
    other.layer = 2;
    CHECK(dropped(*device, other, {.random_key = {3, 4}}) != whole);
    CHECK(std::vector<float>(whole.begin(), whole.begin() + 37) !=
          std::vector<float>(whole.begin() + 37, whole.begin() + 74));
}
