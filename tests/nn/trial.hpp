#pragma once

#include "finch/base/random.hpp"
#include "finch/nn/initialization.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace finch::test {

/// The sums of a worker with one rank, as if there were others.
struct OneRank : backend::GroupSum {
    void sum(double* /*values*/, std::size_t /*count*/) override {}
};

/// A model with a batch of random input. The first `samples` of the batch are real, the others are padding.
struct Trial {
    Trial(nn::ModelPlan plan, std::int64_t real, std::unique_ptr<backend::Device> on = backend::make_cpu_device(1))
        : device(std::move(on)), samples(real), model(*device, std::move(plan)) {
        RandomStream random(7, Purpose::test);
        const std::int64_t batch = model.plan().batch;
        input.resize(static_cast<std::size_t>(batch * model.plan().input.size()));
        for (float& value : input) {
            value = static_cast<float>(random.normal());
        }
        for (std::int64_t i = 0; i < batch; ++i) {
            labels.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(model.plan().classes))));
        }
        pixels.resize(labels.size());
        state = nn::initial_state(model.plan(), 1, 1);
        context = device->make_step_context({.pixels = pixels, .labels = labels, .pixels_per_image = 1}, batch);
    }

    /// Returns the mean loss of a step from `state`. In training it also computes the gradients.
    double loss(backend::Mode mode = backend::Mode::training) {
        model.set_state(state);
        std::vector<std::int64_t> indices(labels.size(), -1);
        std::iota(indices.begin(), indices.begin() + samples, 0);
        const backend::StepScalars scalars{.grad_scale = 1.0F / static_cast<float>(samples), .random_key = {1, 2}};
        context->set_sums({});
        context->fill(indices, std::span(&scalars, 1));
        const backend::Pass pass{.step = *context, .mode = mode, .group = group};
        device->next_step(pass.step);
        device->load_batch(pass.step, model.input());  // on a GPU, this begins the step
        device->upload(input, model.input());
        model.forward(pass);
        const bool trains = mode == backend::Mode::training;
        device->softmax_cross_entropy(pass.step, model.logits(), model.plan().classes,
                                      trains ? model.grad_logits() : nullptr);
        if (trains) {
            ranges.clear();
            grads_when_ready.resize(state.parameters.size());
            model.backward(pass, [&](std::int64_t begin, std::int64_t end) {
                ranges.emplace_back(begin, end);
                device->download(model.grads().data() + begin,
                                 std::span(grads_when_ready)
                                     .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
            });
        }
        return context->sums().loss / static_cast<double>(samples);
    }

    [[nodiscard]] std::vector<float> grads() {
        std::vector<float> result(state.parameters.size());
        device->download(model.grads().data(), result);
        return result;
    }

    std::unique_ptr<backend::Device> device;
    backend::GroupSum* group = nullptr;  ///< null: one rank
    std::int64_t samples;
    nn::Model model;
    std::vector<float> input;
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
    std::unique_ptr<backend::StepContext> context;
    nn::ModelState state;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  ///< of the last backward pass
    std::vector<float> grads_when_ready;                        ///< each range, when the backward pass announced it
};

/// Checks every tensor's gradient by finite differences. All entries of a tensor are moved along the signs of its
/// gradient, the direction of the largest slope. The tolerance is 2 % of the slope plus `share` of the largest entry of
/// all gradients.
inline void check_slopes(Trial& trial, double step, double share) {
    static_cast<void>(trial.loss());
    const std::vector<float> grads = trial.grads();
    const std::vector<float> start = trial.state.parameters;
    double most = 0;
    for (const float grad : grads) {
        most = std::max(most, std::abs(static_cast<double>(grad)));
    }
    for (const nn::TensorInfo& tensor : trial.model.plan().tensors) {
        if (!tensor.learns) {
            continue;
        }
        CAPTURE(tensor.name);
        const auto begin = static_cast<std::size_t>(tensor.offset);
        const auto end = begin + static_cast<std::size_t>(tensor.size);
        const auto loss_at = [&](double by) {
            trial.state.parameters = start;
            for (std::size_t i = begin; i < end; ++i) {
                trial.state.parameters[i] += static_cast<float>(std::copysign(by, by * static_cast<double>(grads[i])));
            }
            return trial.loss();
        };
        double slope = 0;
        for (std::size_t i = begin; i < end; ++i) {
            slope += std::abs(static_cast<double>(grads[i]));
        }
        const double found = (loss_at(step) - loss_at(-step)) / (2 * step);

        CHECK(slope > 0);
        CHECK(std::abs(found - slope) < 0.02 * slope + share * most);
    }
}

}  // namespace finch::test
