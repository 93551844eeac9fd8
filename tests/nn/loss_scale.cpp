// Tests of loss scaling and skipped steps on a device, against PyTorch's GradScaler.
#include "finch/backend/device.hpp"
#include "finch/nn/average.hpp"
#include "finch/nn/model.hpp"
#include "finch/nn/optimizer.hpp"

#include "backend/make_device.hpp"
#include "nn/formula.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <map>
#include <sstream>

using namespace finch;
using namespace finch::backend;
using test::begin_step;
using test::from_device;
using test::make_device;
using test::on_device;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// A step context with one image and one label, for a loss or for unscale().
class Steps {
public:
    explicit Steps(Device& device, float scale)
        : device_(device),
          context_(device.make_step_context({.pixels = pixels_, .labels = labels_, .pixels_per_image = 1}, 1)) {
        context_->set_loss_scale({.scale = scale});
    }
    StepContext& begin(const StepScalars& scalars) {
        context_->fill(std::array<std::int64_t, 1>{0}, std::span(&scalars, 1));
        begin_step(device_, *context_, 1);
        return *context_;
    }
    [[nodiscard]] LossScale scale() {
        device_.synchronize();
        return context_->loss_scale();
    }

private:
    std::array<std::uint8_t, 1> pixels_{};
    std::array<std::int32_t, 1> labels_{1};
    Device& device_;
    std::unique_ptr<StepContext> context_;
};

// The same gradients and overflows as in tools/fixtures/grad_scaler.py.
constexpr std::size_t parameters = 5;
float gradient(std::int64_t step, std::size_t parameter) {
    return static_cast<float>((step * 7 + static_cast<std::int64_t>(parameter) * 13) % 31 - 14) / 64;
}
const std::map<std::int64_t, float> overflows{{1, infinity},  {2, NAN},   {3, -infinity},   {10, infinity},
                                              {11, infinity}, {700, NAN}, {2701, infinity}, {4702, infinity}};

/// A training that repeats the fixture's steps with one optimizer.
class Trained {
public:
    Trained(const backend::Optimizer& rule, double rate)
        : rate_(rate), optimizer_(*device_, rule, plan_, {.clip_norm = 0.5}), average_(*device_, plan_, 0.99) {
        std::vector<float> start;
        for (std::size_t i = 0; i < parameters; ++i) {
            start.push_back((static_cast<float>(i) - 2) / 4);
        }
        device_->upload(start, model_.parameters().data());
        average_.set_state({.parameters = start, .buffers = {}}, 0);
    }

    void step() {
        ++steps_;
        StepContext& context = context_.begin({.optimizer = optimizer_.next(rate_), .average_share = average_.next()});
        const float scale = context_.scale().scale;
        std::vector<float> grads;
        for (std::size_t i = 0; i < parameters; ++i) {
            grads.push_back(gradient(steps_, i) * scale);
        }
        if (const auto overflow = overflows.find(steps_); overflow != overflows.end()) {
            grads[static_cast<std::size_t>(steps_) % parameters] = overflow->second;
        }
        device_->upload(grads, model_.grads().data());
        device_->unscale(context, model_.grads().data(), parameters);
        optimizer_.apply(context, model_.parameters(), model_.grads());
        average_.apply(context, model_);
    }
    [[nodiscard]] std::int64_t steps() const { return steps_; }
    [[nodiscard]] LossScale scale() { return context_.scale(); }
    [[nodiscard]] std::vector<float> numbers() {
        std::vector<float> all = model_.state().parameters;
        const std::vector<float> averages = average_.state().parameters;
        all.insert(all.end(), averages.begin(), averages.end());
        return all;
    }

private:
    double rate_;
    std::unique_ptr<Device> device_ = make_device();
    nn::ModelPlan plan_ = nn::plan_model({nn::FlattenLayer{}, nn::LinearLayer{}}, {1, 1, 4}, 1, 1);
    nn::Model model_{*device_, plan_};
    nn::Optimizer optimizer_;
    nn::WeightAverage average_;
    Steps context_{*device_, LossScale::first_scale};
    std::int64_t steps_ = 0;
};

std::unique_ptr<Trained> trained_by(const std::string& name) {
    if (name == "sgd") {
        return std::make_unique<Trained>(Sgd{.momentum = 0.9}, 0.01);
    }
    if (name == "adam") {
        return std::make_unique<Trained>(Adam{}, 0.01);
    }
    return name == "adamw" ? std::make_unique<Trained>(AdamW{}, 0.01) : std::make_unique<Trained>(Adadelta{}, 1);
}

}  // namespace

TEST_CASE("loss scale: scale, skipped steps, weights and averages match PyTorch's GradScaler over 4710 steps") {
    test::Fixture fixture("grad_scaler.txt");
    std::map<std::string, std::unique_ptr<Trained>> all;
    int lines = 0;
    for (std::string text; fixture.line(text); ++lines) {
        std::istringstream line(text);
        std::string name;
        std::int64_t step = 0;
        std::int64_t skipped = 0;
        std::int32_t good_steps = 0;
        double scale = 0;
        line >> name >> step >> scale >> good_steps >> skipped;
        CAPTURE(name);
        CAPTURE(step);
        std::unique_ptr<Trained>& trained = all[name];
        trained = trained ? std::move(trained) : trained_by(name);
        while (trained->steps() < step) {
            trained->step();
        }

        const LossScale found = trained->scale();
        CHECK(static_cast<double>(found.scale) == scale);
        CHECK(found.good_steps == good_steps);
        CHECK(found.skipped == skipped);
        CHECK(found.skips == (overflows.contains(step) ? 1 : 0));
        double apart = 0;
        for (const float number : trained->numbers()) {
            double expected = 0;
            line >> expected;
            apart = std::max(apart, std::abs(static_cast<double>(number) - expected));
        }
        CHECK(apart < 2e-5);  // 4710 steps in float32, weights up to 8
    }
    CHECK(lines > 200);
}

TEST_CASE("unscale: divides exactly, and detects a non-finite gradient at any index") {
    const auto device = make_device();
    for (const std::size_t count : {1U, 7U, 4096U, 70001U}) {
        std::vector<float> grads;
        for (std::size_t i = 0; i < count; ++i) {
            grads.push_back(65504.0F / static_cast<float>(i + 1));
        }
        for (const float odd : {1.0F, std::numeric_limits<float>::max(), infinity, -infinity, NAN}) {
            for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
                CAPTURE(count);
                CAPTURE(odd);
                CAPTURE(at);
                grads[at] = odd;
                Steps steps(*device, 1024);
                const Buffer on = on_device(*device, grads);

                device->unscale(steps.begin({}), on.data(), count);

                CHECK(steps.scale().skips == (std::isfinite(odd) ? 0 : 1));
                CHECK(steps.scale().scale == (std::isfinite(odd) ? 1024 : 512));
                const std::vector<float> found = from_device(*device, on);
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < count; ++i) {
                    wrong += std::isnan(grads[i]) ? !std::isnan(found[i]) : found[i] != grads[i] / 1024;
                }
                CHECK(wrong == 0);
                grads[at] = 0;
            }
        }
    }
}

TEST_CASE("loss scale: the loss's gradient is multiplied exactly by the scale; a scale of 1 changes no bit") {
    const auto device = make_device();
    const std::vector<float> logits{0.3F, -1.2F, 2.5F};
    const Buffer on = on_device(*device, logits);
    const Buffer grad = device->allocate(3);
    const auto grad_at = [&](float scale) {
        Steps steps(*device, scale);
        device->softmax_cross_entropy(steps.begin({.grad_scale = 0.37F}), on.data(), 3, grad.data());
        return from_device(*device, grad);
    };
    const std::vector<float> plain = grad_at(1);
    double sum = 0;
    for (const float logit : logits) {
        sum += std::exp(static_cast<double>(logit));
    }
    CHECK(plain[0] == doctest::Approx(0.37 * std::exp(static_cast<double>(logits[0])) / sum));

    const std::vector<float> scaled = grad_at(32768);

    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(scaled[i] == plain[i] * 32768);
    }
}

TEST_CASE("a loss scale below least_scale is exhausted: it does not change, and all further steps are skipped") {
    const auto device = make_device();
    Steps steps(*device, LossScale::least_scale);
    CHECK(!steps.scale().is_exhausted());

    for (const float odd : {1.0F, infinity, infinity, 1.0F, 1.0F}) {
        const Buffer grads = on_device(*device, std::vector<float>{odd});
        device->unscale(steps.begin({}), grads.data(), 1);
        CHECK(steps.scale().is_exhausted() == (steps.scale().skipped > 0));
    }

    CHECK(steps.scale().scale == LossScale::least_scale / 2);
    CHECK(steps.scale().skipped == 4);
    CHECK(steps.scale().skips == 1);
}

TEST_CASE("a loss scale grows to most_scale and not further") {
    const auto device = make_device();
    const Buffer grads = on_device(*device, std::vector<float>{0});
    Steps steps(*device, LossScale::most_scale / 2);
    for (int step = 0; step < 2 * LossScale::growth_interval; ++step) {
        device->unscale(steps.begin({}), grads.data(), 1);
    }

    CHECK(steps.scale().scale == LossScale::most_scale);
    CHECK(steps.scale().good_steps == 0);
}

TEST_CASE("without_skipped: Adam's scalars count only the steps that were taken; other optimizers' do not change") {
    for (const std::int64_t step : {2, 10, 1000, 100000}) {
        for (const std::int64_t skipped : {std::int64_t{1}, step / 2, step - 1}) {
            const OptimizerScalars found = without_skipped(AdamW{}.scalars(0.02, step), skipped);
            const OptimizerScalars expected = AdamW{}.scalars(0.02, step - skipped);
            CAPTURE(step);
            CAPTURE(skipped);
            CHECK(found.rate == doctest::Approx(expected.rate).epsilon(3e-7));
            CHECK(found.root_correction == doctest::Approx(expected.root_correction).epsilon(3e-7));
            CHECK(found.keep == expected.keep);
        }
        CHECK(without_skipped(Adam{}.scalars(0.02, step), 0).rate == Adam{}.scalars(0.02, step).rate);
        CHECK(without_skipped(Adadelta{}.scalars(0.02, step), 1).rate == Adadelta{}.scalars(0.02, step).rate);
    }
}
