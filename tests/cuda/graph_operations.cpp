// Compares operations that read the current step, and the sum of two tensors, with the CPU. The batches are uneven. The
// operations are enqueued call by call, and captured as a graph.
#include "backend/make_device.hpp"
#include "backend/tensors.hpp"
#include "cuda/device_array.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

using namespace finch;
using namespace finch::backend;
using finch::test::from_device;
using finch::test::on_device;

namespace {

constexpr double tolerance = 1e-5;  ///< relative to each tensor's largest entry
constexpr std::int64_t batch = 6;
constexpr std::int64_t samples[] = {6, 4, 1, 6};  ///< of each step; the other samples are padding

/// The results of one step.
struct Result {
    std::vector<float> y, grad_x, grad_other, grad_parameters, buffers;
    bool operator==(const Result&) const = default;
};

/// An operation with its tensors on a device, and steps with uneven batches. Padding has nonzero values too.
template <class Shape>
class Trial {
public:
    Trial(Device& device, const Shape& shape) : device_(device), operation_(device.make(shape)) {
        RandomStream random(31, Purpose::test);
        const std::size_t size = input_size(shape);
        images_ = device.allocate(batch);
        x_ = on_device(device, normal_tensor(random, size));
        other_ = on_device(device, normal_tensor(random, size));
        grad_y_from_ = normal_tensor(random, size);
        grad_y_ = device.allocate(size);
        y_ = device.allocate(size);
        grad_x_ = device.allocate(size);
        grad_other_ = device.allocate(size);
        std::size_t channels = 1;
        if constexpr (requires { shape.channels; }) {
            channels = static_cast<std::size_t>(shape.channels);
        }
        parameters_ = on_device(device, normal_tensor(random, 2 * channels));
        grad_parameters_ = device.allocate(2 * channels);
        buffers_ = on_device(device, std::vector<float>(2 * channels, 1));
        operation_->pack(parameters_.data(), buffers_.data());
        context_ = device.make_step_context({.pixels = pixels_, .labels = labels_, .pixels_per_image = 1}, batch);
        fill();
    }

    /// Returns one result per step.
    std::vector<Result> train(CaptureAs how) {
        const auto step = device_.capture([this] { train_once(); }, how);
        std::vector<Result> results;
        for (std::size_t i = 0; i < std::size(samples); ++i) {
            device_.upload(std::vector<float>(grad_y_from_.begin(), grad_y_from_.end()), grad_y_.data());
            step->run(1);
            device_.synchronize();
            results.push_back(result());
        }
        return results;
    }
    Result validate() {
        fill();
        test::begin_step(device_, *context_, batch);
        operation_->forward({.step = *context_, .mode = Mode::validation}, inputs(), y_.data());
        return result();
    }

private:
    void fill() {
        std::vector<std::int64_t> indices;
        std::vector<StepScalars> steps;
        for (const std::int64_t real : samples) {
            for (std::int64_t i = 0; i < batch; ++i) {
                indices.push_back(i < real ? i : -1);
            }
            const auto number = static_cast<std::uint32_t>(steps.size());
            steps.push_back({.random_key = {7 + number, 9}, .first_sample = (std::int64_t{1} << 32) + 3});
        }
        context_->fill(indices, steps);
    }
    [[nodiscard]] std::vector<const float*> inputs() const {
        std::vector<const float*> inputs{x_.data()};
        if (std::is_same_v<Shape, AddShape>) {
            inputs.push_back(other_.data());
        }
        return inputs;
    }
    void train_once() {
        std::vector<float*> grads{grad_x_.data()};
        if (std::is_same_v<Shape, AddShape>) {
            grads.push_back(grad_other_.data());
        }
        const Pass pass{.step = *context_};
        device_.next_step(*context_);
        device_.load_batch(*context_, images_.data());
        device_.softmax_cross_entropy(*context_, images_.data(), 1, nullptr);
        operation_->forward(pass, inputs(), y_.data());
        operation_->backward(pass, inputs(), y_.data(), grad_y_.data(), grads, grad_parameters_.data());
        device_.finish_deferred();
        device_.accumulate(grad_x_.data(), grad_other_.data(), grad_x_.size());
    }
    [[nodiscard]] Result result() const {
        return {from_device(device_, y_), from_device(device_, grad_x_), from_device(device_, grad_other_),
                from_device(device_, grad_parameters_), from_device(device_, buffers_)};
    }

    std::vector<std::uint8_t> pixels_ = std::vector<std::uint8_t>(batch);
    std::vector<std::int32_t> labels_ = std::vector<std::int32_t>(batch);
    Device& device_;
    std::unique_ptr<Operation> operation_;
    reference::Tensor grad_y_from_;
    Buffer images_, x_, other_, y_, grad_y_, grad_x_, grad_other_, parameters_, grad_parameters_, buffers_;
    std::unique_ptr<StepContext> context_;
};

double apart(const std::vector<float>& actual, const std::vector<float>& expected) {
    return difference(actual, reference::Tensor(expected.begin(), expected.end()));
}

void check_close(const Result& actual, const Result& expected) {
    CHECK(apart(actual.y, expected.y) < tolerance);
    CHECK(apart(actual.grad_x, expected.grad_x) < tolerance);
    CHECK(apart(actual.grad_other, expected.grad_other) < tolerance);
    CHECK(apart(actual.grad_parameters, expected.grad_parameters) < tolerance);
    CHECK(apart(actual.buffers, expected.buffers) < tolerance);
}

/// Compares the device under test with the CPU. Returns the device's results.
template <class Shape>
std::vector<Result> check(const Shape& shape) {
    const auto cpu = make_cpu_device(1);
    const auto device = test::make_device();
    Trial<Shape> expected(*cpu, shape);
    const std::vector<Result> steps = expected.train(CaptureAs::calls);
    const Result validated = expected.validate();
    std::vector<Result> by_calls;
    for (const CaptureAs how : {CaptureAs::calls, CaptureAs::graph}) {
        Trial<Shape> trial(*device, shape);
        const std::vector<Result> results = trial.train(how);
        for (std::size_t i = 0; i < steps.size(); ++i) {
            CAPTURE(i);
            check_close(results[i], steps[i]);
        }
        CHECK(apart(trial.validate().y, validated.y) < tolerance);
        by_calls = how == CaptureAs::calls ? results : by_calls;
        CHECK(results == by_calls);
    }
    return by_calls;
}

}  // namespace

TEST_CASE("add: sums, activations and both gradients match the CPU") {
    for (const Activation activation : {Activation::none, Activation::relu, Activation::tanh})
        for (const std::int64_t count : {6, 1000}) {
            check(AddShape{.count = count, .activation = activation});
        }
}

TEST_CASE("batch_norm: outputs, gradients and running statistics match the CPU; padding becomes 0") {
    for (const auto& [pixels, channels] : {std::pair{1, 1}, {9, 3}, {49, 10}, {1, 40}, {300, 5}, {4, 33}})
        for (const Activation activation : {Activation::none, Activation::relu, Activation::tanh}) {
            CAPTURE(pixels);
            CAPTURE(channels);
            // With one value per channel the variance is 0, and the gradient would be a difference of rounding errors.
            // A larger epsilon avoids this.
            const std::vector<Result> results = check(BatchNormShape{.batch = batch,
                                                                     .pixels = pixels,
                                                                     .channels = channels,
                                                                     .momentum = 0.3,
                                                                     .epsilon = pixels == 1 ? 1 : 1e-5,
                                                                     .activation = activation});
            const auto real = static_cast<std::size_t>(samples[1] * pixels * channels);
            for (const std::vector<float>* values : {&results[1].y, &results[1].grad_x}) {
                CHECK(std::vector(values->begin() + static_cast<std::ptrdiff_t>(real), values->end()) ==
                      std::vector<float>(values->size() - real));
            }
        }
}

TEST_CASE("dropout: results have the same bits as on the CPU, and each step has another mask") {
    for (const std::int64_t features : {1, 4, 7, 1030}) {
        CAPTURE(features);
        const DropoutShape shape{.batch = batch, .features = features, .rate = 0.4, .layer = 3};
        const std::vector<Result> results = check(shape);
        const auto cpu = make_cpu_device(1);

        CHECK(results == Trial<DropoutShape>(*cpu, shape).train(CaptureAs::calls));
        CHECK((features == 1 || results[0].y != results[1].y));
    }
}

TEST_CASE("batch_norm: the order of threads changes no bit") {
    const auto device = test::make_device();
    const BatchNormShape shape{.batch = batch, .pixels = 49, .channels = 10};

    CHECK(test::same_in_every_order([&] { return Trial<BatchNormShape>(*device, shape).train(CaptureAs::calls); }));
}

TEST_CASE("batch_norm needs scratch memory, dropout does not") {
    const auto device = test::make_device();

    CHECK(device->scratch_bytes(BatchNormShape{.batch = 64, .pixels = 784, .channels = 10}) > 0);
    CHECK(device->scratch_bytes(DropoutShape{.batch = 64, .features = 784}) == 0);
}
