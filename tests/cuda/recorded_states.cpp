// Compares the device under test with the CPU. From states of CPU trainings, one step on both must give the same loss,
// gradients and updates. Trainings of 100 steps, at rates that do not amplify rounding, must give the same losses.
#include "finch/base/random.hpp"
#include "finch/nn/initialization.hpp"
#include "finch/nn/model.hpp"
#include "finch/nn/optimizer.hpp"

#include "backend/make_device.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::nn;
using backend::Activation;
using backend::Pooling;

namespace {

constexpr double tolerance = 1e-5;  ///< relative to a tensor's largest entry

/// A network and its training data: random images with a bright region that depends on the class.
struct Example {
    std::string name;
    ModelSpec spec;
    SampleShape input;
    std::int64_t batch = 8;
    int states = 20;
};

/// Returns the examples. `size` is the height and width of the tutorial's images; the other images are always small.
std::vector<Example> examples(std::int64_t size) {
    const auto tutorial = [](std::int64_t layers) {
        return ModelSpec{ConvLayer{.activation = Activation::relu, .repeat = layers}, FlattenLayer{}, LinearLayer{}};
    };
    return {
        {.name = "tutorial, 2 layers", .spec = tutorial(2), .input = {size, size, 1}},
        {.name = "tutorial, 6 layers", .spec = tutorial(6), .input = {size, size, 1}, .states = 15},
        {.name = "max and average pooling, sigmoid",
         .spec = {ConvLayer{.channels = 6, .activation = Activation::sigmoid}, PoolLayer{.kind = Pooling::max},
                  ConvLayer{.channels = 12, .activation = Activation::sigmoid}, PoolLayer{.kind = Pooling::average},
                  FlattenLayer{}, LinearLayer{.units = 20, .activation = Activation::sigmoid}, LinearLayer{}},
         .input = {12, 12, 3},
         .batch = 5},
        {.name = "wide channels, relu",
         .spec = {ConvLayer{.channels = 24, .activation = Activation::relu},
                  ConvLayer{.channels = 33, .activation = Activation::relu}, PoolLayer{}, FlattenLayer{},
                  LinearLayer{}},
         .input = {8, 8, 3},
         .batch = 6,
         .states = 15},
        {.name = "strides, other kernels, tanh",
         .spec = {ConvLayer{.channels = 8, .kernel = 5, .stride = 2, .padding = 2, .activation = Activation::tanh},
                  ConvLayer{.channels = 16, .kernel = 3, .stride = 2, .padding = 0, .activation = Activation::tanh},
                  FlattenLayer{}, LinearLayer{.units = 30, .activation = Activation::tanh}, LinearLayer{}},
         .input = {13, 13, 2},
         .batch = 7},
        {.name = "activation by itself, even kernel",
         .spec = {ConvLayer{.channels = 5, .kernel = 4}, PoolLayer{.kernel = 3, .stride = 2, .padding = 1},
                  ActivationLayer{.activation = Activation::tanh}, FlattenLayer{}, LinearLayer{}},
         .input = {10, 10, 1},
         .batch = 9,
         .states = 10},
    };
}

constexpr std::int64_t classes = 10;
constexpr std::int64_t image_count = 64;

struct Set {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
    SampleShape shape;

    explicit Set(SampleShape of) : shape(of) {
        RandomStream random(21, Purpose::test);
        for (std::int64_t image = 0; image < image_count; ++image) {
            labels.push_back(static_cast<std::int32_t>(random.below(classes)));
            for (std::int64_t i = 0; i < shape.size(); ++i) {
                const bool bright = i * classes / shape.size() == labels.back();
                pixels.push_back(static_cast<std::uint8_t>(random.below(bright ? 256 : 64)));
            }
        }
    }
    [[nodiscard]] backend::Images images() const {
        const auto channels = static_cast<std::size_t>(shape.channels);
        return {.pixels = pixels,
                .labels = labels,
                .pixels_per_image = shape.size(),
                .mean = std::vector<float>(channels, 0.15F),
                .deviation = std::vector<float>(channels, 0.2F)};
    }
};

/// The state of a training.
struct State {
    ModelState model;
    NamedArrays optimizer;
};

/// A training of an example on one device, step by step.
class Trainee {
public:
    Trainee(std::unique_ptr<backend::Device> device, const Example& example, const Set& set,
            const backend::Optimizer& optimizer)
        : device_(std::move(device)),
          model_(*device_, plan_model(example.spec, example.input, classes, example.batch)),
          optimizer_(*device_, optimizer, model_.plan()),
          context_(device_->make_step_context(set.images(), example.batch)),
          step_(device_->capture([this] { step(); }, backend::CaptureAs::graph)) {
        model_.set_state(initial_state(plan(), 5, 1));
    }

    [[nodiscard]] const ModelPlan& plan() const { return model_.plan(); }
    [[nodiscard]] std::vector<float> weights() { return download(model_.parameters()); }
    [[nodiscard]] std::vector<float> grads() { return download(model_.grads()); }
    [[nodiscard]] State state() { return {model_.state(), optimizer_.state()}; }
    void start_from(const State& state) {
        model_.set_state(state.model);
        optimizer_.set_state(state.optimizer);
    }

    /// Runs step `number`, which determines the images. Returns the mean loss.
    double take(std::int64_t number, double rate) {
        const std::int64_t batch = plan().batch;
        std::vector<std::int64_t> indices;
        for (std::int64_t i = 0; i < batch; ++i) {
            indices.push_back((number * batch + i) * 7 % image_count);
        }
        context_->set_sums({});
        context_->fill(indices, std::vector<backend::StepScalars>{{.grad_scale = 1.0F / static_cast<float>(batch),
                                                                   .optimizer = optimizer_.next(rate)}});
        step_->run(1);
        device_->synchronize();
        return context_->sums().loss / static_cast<double>(batch);
    }

private:
    void step() {
        const backend::Pass pass{.step = *context_};
        device_->next_step(*context_);
        device_->load_batch(*context_, model_.input());
        model_.forward(pass);
        device_->softmax_cross_entropy(*context_, model_.logits(), classes, model_.grad_logits());
        model_.backward(pass, [](std::int64_t /*begin*/, std::int64_t /*end*/) {});
        optimizer_.apply(*context_, model_.parameters(), model_.grads());
        model_.pack();
    }
    std::vector<float> download(std::span<const float> from) {
        std::vector<float> values(from.size());
        device_->download(from.data(), values);
        return values;
    }

    std::unique_ptr<backend::Device> device_;
    Model model_;
    Optimizer optimizer_;
    std::unique_ptr<backend::StepContext> context_;
    std::unique_ptr<backend::CapturedStep> step_;
};

/// Returns the largest difference over a tensor, relative to its largest entry. NaN counts as infinite.
double apart(std::span<const float> actual, std::span<const float> expected) {
    double most = 0;
    double top = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double here = std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
        most = here <= INFINITY ? std::max(most, here) : INFINITY;
        top = std::max(top, std::abs(static_cast<double>(expected[i])));
    }
    return top > 0 ? most / top : most;
}

std::vector<float> moved(const std::vector<float>& after, const std::vector<float>& before) {
    std::vector<float> difference(after.size());
    std::transform(after.begin(), after.end(), before.begin(), difference.begin(), std::minus<>());
    return difference;
}

/// Returns apart() of the model's worst tensor.
double worst_tensor(const ModelPlan& plan, const std::vector<float>& actual, const std::vector<float>& expected) {
    double worst = 0;
    for (const TensorInfo& tensor : plan.tensors) {
        const auto part = [&](const std::vector<float>& arena) {
            return std::span(arena).subspan(static_cast<std::size_t>(tensor.offset),
                                            static_cast<std::size_t>(tensor.size));
        };
        worst = std::max(worst, apart(part(actual), part(expected)));
    }
    return worst;
}

/// Returns whether rounding alone can change the gradients of a step by more than the tolerance. A relu with an input
/// near 0, or two nearly equal candidates of a maximum, may flip by rounding. If a sample is nearly certain, its
/// gradient is a small difference of numbers near 1. To detect such steps, the CPU repeats the step with weights that
/// differ randomly by up to 1e-7 of their value. The step is ill-conditioned if any of these gradients differs from
/// `grads` by more than a third of the tolerance.
bool is_ill_conditioned(Trainee& cpu, const State& state, std::int64_t number, double rate,
                        const std::vector<float>& grads) {
    RandomStream random(22, Purpose::test, static_cast<std::uint64_t>(number));
    for (int attempt = 0; attempt < 30; ++attempt) {
        State shaken = state;
        for (float& weight : shaken.model.parameters) {
            weight *= static_cast<float>(1 + 1e-7 * random.uniform(-1, 1));
        }
        cpu.start_from(shaken);
        cpu.take(number, rate);
        if (worst_tensor(cpu.plan(), cpu.grads(), grads) > tolerance / 3) {
            return true;
        }
    }
    return false;
}

/// The differences between two devices after a step from the same state.
struct Differences {
    double loss = 0;
    double grads = 0;    ///< of the worst tensor
    double updates = 0;  ///< of the worst tensor, minus the rounding of the weights
};

Differences compare_step(Trainee& cpu, Trainee& device, std::int64_t number, double rate) {
    const State state = cpu.state();
    const std::vector<float>& before = state.model.parameters;
    device.start_from(state);
    const double expected = cpu.take(number, rate);
    const double actual = device.take(number, rate);
    const std::vector<float> cpu_grads = cpu.grads();
    const std::vector<float> device_grads = device.grads();
    const std::vector<float> cpu_moves = moved(cpu.weights(), before);
    const std::vector<float> device_moves = moved(device.weights(), before);

    Differences worst;
    worst.grads = worst_tensor(cpu.plan(), device_grads, cpu_grads);
    worst.loss = std::abs(actual - expected) / std::max(1.0, std::abs(expected));
    for (const TensorInfo& tensor : cpu.plan().tensors) {
        const auto part = [&](const std::vector<float>& arena) {
            return std::span(arena).subspan(static_cast<std::size_t>(tensor.offset),
                                            static_cast<std::size_t>(tensor.size));
        };
        double weight = 0;
        double move = 0;
        for (const float value : part(before)) {
            weight = std::max(weight, std::abs(static_cast<double>(value)));
        }
        for (const float value : part(cpu_moves)) {
            move = std::max(move, std::abs(static_cast<double>(value)));
        }
        const double rounding = move > 0 ? weight * 0x1p-23 / move : 0;
        worst.updates = std::max(worst.updates, apart(part(device_moves), part(cpu_moves)) - rounding);
    }
    return worst;
}

/// Trains on the CPU, and runs every fourth step on the device too. Returns the number of compared states. Skips
/// ill-conditioned states.
int check_states(const Example& example, const backend::Optimizer& optimizer, double rate) {
    const Set set(example.input);
    Trainee cpu(backend::make_cpu_device(1), example, set, optimizer);
    Trainee probe(backend::make_cpu_device(1), example, set, optimizer);
    Trainee device(test::make_device(), example, set, optimizer);
    Differences worst;
    int compared = 0;
    int passed_over = 0;
    for (std::int64_t number = 0; compared < example.states && passed_over <= example.states; ++number) {
        if (number % 4 != 3) {
            cpu.take(number, rate);
            continue;
        }
        const State state = cpu.state();
        const Differences here = compare_step(cpu, device, number, rate);
        if (!(here.grads < tolerance) && is_ill_conditioned(probe, state, number, rate, cpu.grads())) {
            ++passed_over;
            continue;
        }
        CAPTURE(number);
        CHECK(here.loss < tolerance);
        CHECK(here.grads < tolerance);
        CHECK(here.updates < tolerance);
        worst = {std::max(worst.loss, here.loss), std::max(worst.grads, here.grads),
                 std::max(worst.updates, here.updates)};
        ++compared;
    }
    MESSAGE(example.name << ": " << compared << " states, " << passed_over << " passed over; loss " << worst.loss
                         << ", gradients " << worst.grads << ", updates " << worst.updates);
    return compared;
}

/// Trains the CPU and the device independently for 100 steps from the same start. Returns the largest difference of the
/// losses.
double free_running(const Example& example, const backend::Optimizer& optimizer, double rate) {
    const Set set(example.input);
    Trainee cpu(backend::make_cpu_device(1), example, set, optimizer);
    Trainee device(test::make_device(), example, set, optimizer);
    double worst = 0;
    for (std::int64_t number = 0; number < 100; ++number) {
        const double expected = cpu.take(number, rate);
        const double here = std::abs(device.take(number, rate) - expected);
        worst = here <= INFINITY ? std::max(worst, here) : INFINITY;
    }
    return worst;
}

}  // namespace

namespace {

void check_all_states(std::int64_t size) {
    int compared = 0;
    for (const Example& example : examples(size)) {
        CAPTURE(example.name);
        const int here = check_states(example, backend::Sgd{.momentum = 0.9}, 0.05);
        CHECK(here == example.states);
        compared += here;
    }
    CHECK(compared == 100);
}

void check_free_running(std::int64_t size) {
    for (const Example& example : examples(size)) {
        CAPTURE(example.name);
        const double adadelta = free_running(example, backend::Adadelta{}, 0.01);
        const double sgd = free_running(example, backend::Sgd{}, 0.001);
        MESSAGE(example.name << ": Adadelta " << adadelta << ", SGD " << sgd);
        CHECK(adadelta < 1e-4);
        CHECK(sgd < 1e-4);
    }
}

}  // namespace

TEST_CASE("one step from each of 100 recorded states: loss, gradients and updates match the CPU to 1e-5") {
    check_all_states(10);
}

TEST_CASE("100 steps of Adadelta with rate 0.01, and of SGD with 0.001: the losses match the CPU to 1e-4") {
    check_free_running(10);
}

// These tests use the tutorial's image size and take long on the stand-in: run them with --no-skip.
TEST_CASE("100 recorded states and 100 free steps at the tutorial's full size" * doctest::skip()) {
    check_all_states(28);
    check_free_running(28);
}
