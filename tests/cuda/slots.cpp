// Test of two trainings of the same shape that run on one device at the same time (slots). They share the libraries'
// handles and plans, and NVIDIA does not say whether an engine keeps state in a handle.
#include "finch/backend/device.hpp"
#include "finch/nn/initialization.hpp"
#include "finch/nn/model.hpp"
#include "finch/nn/optimizer.hpp"

#include "backend/make_device.hpp"
#include "cuda/on_a_gpu.hpp"

#include <cstdint>
#include <doctest/doctest.h>
#include <memory>
#include <numeric>
#include <vector>

using namespace finch;
using namespace finch::test;

namespace {

constexpr std::int64_t batch = 16;

/// A training of a network whose layers are too wide for Finch's own kernels, with its captured step.
class Slot {
public:
    explicit Slot(backend::Device& device)
        : device_(device),
          model_(device,
                 nn::plan_model({nn::ConvLayer{.channels = 24, .activation = backend::Activation::relu, .repeat = 2},
                                 nn::FlattenLayer{}, nn::LinearLayer{}},
                                {8, 8, 1}, 40, batch)),
          optimizer_(device, backend::Adadelta{}, model_.plan()),
          pixels_(64 * batch),
          labels_(batch) {
        std::iota(pixels_.begin(), pixels_.end(), std::uint8_t{1});
        std::iota(labels_.begin(), labels_.end(), 0);
        context_ = device.make_step_context({.pixels = pixels_, .labels = labels_, .pixels_per_image = 64}, batch);
        model_.set_state(nn::initial_state(model_.plan(), 1, 1));
        model_.pack();
        step_ = device.capture([this] { step(); }, backend::CaptureAs::graph);
    }

    void enqueue_step() {
        std::vector<std::int64_t> indices(batch);
        std::iota(indices.begin(), indices.end(), 0);
        context_->fill(indices, std::vector<backend::StepScalars>{
                                    {.grad_scale = 1.0F / batch, .optimizer = backend::Adadelta{}.scalars(1, 1)}});
        step_->run(1);
    }
    [[nodiscard]] std::vector<float> parameters() {
        std::vector<float> result(model_.parameters().size());
        device_.download(model_.parameters().data(), result);
        return result;
    }

private:
    void step() {
        const backend::Pass pass{.step = *context_};
        device_.next_step(*context_);
        device_.load_batch(*context_, model_.input());
        model_.forward(pass);
        device_.softmax_cross_entropy(*context_, model_.logits(), 40, model_.grad_logits());
        model_.backward(pass, [](std::int64_t, std::int64_t) {});
        optimizer_.apply(*context_, model_.parameters(), model_.grads());
        model_.pack();
    }

    backend::Device& device_;
    nn::Model model_;
    nn::Optimizer optimizer_;
    std::vector<std::uint8_t> pixels_;
    std::vector<std::int32_t> labels_;
    std::unique_ptr<backend::StepContext> context_;
    std::unique_ptr<backend::CapturedStep> step_;
};

}  // namespace

TEST_CASE("two slots with wide networks of one shape at the same time have the bits of one slot") {
    const int steps = on_a_gpu() ? 200 : 3;  // slow on the stand-ins
    const auto device = make_device();
    const auto second = device->new_stream();
    Slot alone(*device);
    const std::vector<float> initial = alone.parameters();
    for (int i = 0; i < steps; ++i) {
        alone.enqueue_step();
    }
    const std::vector<float> expected = alone.parameters();

    Slot first(*device);
    Slot other(*second);
    for (int i = 0; i < steps; ++i) {
        first.enqueue_step();
        other.enqueue_step();
    }

    CHECK(expected != initial);
    CHECK(first.parameters() == expected);
    CHECK(other.parameters() == expected);
}
