#include "finch/backend/cuda_runtime.hpp"
#include "finch/backend/device.hpp"

#include "grid.hpp"
#include "kernels/clip_norm.hpp"
#include "kernels/load_batch.hpp"
#include "kernels/loss.hpp"
#include "kernels/loss_scale.hpp"
#include "kernels/next_step.hpp"
#include "kernels/optimizer.hpp"
#include "steps.hpp"

#include <algorithm>
#include <span>
#include <variant>

namespace finch::backend::cuda {
namespace {

template <int width>
void load_batch(cudaStream_t stream, const StepView& step, float* out) {
    const std::int64_t groups = groups_of(step.pixels_per_image, width);
    const auto threads = static_cast<int>(std::min<std::int64_t>(256, groups_of(groups, 32) * 32));
    const std::int64_t parts = groups_of(groups, threads);
    FINCH_CUDA(launch(stream, {.blocks_x = step.batch * parts, .threads = threads},
                      LoadBatch<width>{.step = step, .out = out, .parts = static_cast<int>(parts)}));
}

template <int lanes>
void softmax_cross_entropy(cudaStream_t stream, const StepView& step, const float* logits, std::int64_t classes,
                           float* grad) {
    using Kernel = SoftmaxCrossEntropy<lanes>;
    const auto threads =
        static_cast<int>(std::min<std::int64_t>(Kernel::max_threads, groups_of(step.batch * lanes, 32) * 32));
    FINCH_CUDA(launch(stream,
                      {.threads = threads, .shared_bytes = static_cast<std::size_t>(threads / 32) * sizeof(BlockSums)},
                      Kernel{.step = step, .logits = logits, .classes = classes, .grad = grad}));
}

/// The arguments of an optimizer's step.
struct Arena {
    const StepState* state;
    std::span<const ParameterRange> ranges;
    float* parameters;
    const float* grads;
    float* state_a;
    float* state_b;

    [[nodiscard]] bool is_aligned() const {
        const auto bits = reinterpret_cast<std::uintptr_t>(parameters) | reinterpret_cast<std::uintptr_t>(grads) |
                          reinterpret_cast<std::uintptr_t>(state_a) | reinterpret_cast<std::uintptr_t>(state_b);
        return bits % sizeof(float4) == 0;
    }
};

template <class Rule, int states, int width>
void update(cudaStream_t stream, const Arena& arena) {
    using Update = OptimizerUpdate<Rule, states, width>;
    for (auto rest = arena.ranges; !rest.empty();
         rest = rest.subspan(std::min(rest.size(), std::size_t{most_ranges}))) {
        const auto ranges = rest.first(std::min(rest.size(), std::size_t{most_ranges}));
        Update kernel{.state = arena.state,
                      .ranges = {},
                      .first_block = {},
                      .parameters = arena.parameters,
                      .grads = arena.grads,
                      .state_a = arena.state_a,
                      .state_b = arena.state_b};
        std::copy(ranges.begin(), ranges.end(), kernel.ranges);
        for (std::size_t i = 0; i < most_ranges; ++i) {
            // A range may begin and end within a group of `width`.
            const auto groups = static_cast<std::int64_t>(kernel.ranges[i].size / width + 2);
            const std::int64_t blocks = i < ranges.size() ? grid_for(groups).blocks_x : 0;
            kernel.first_block[i + 1] = kernel.first_block[i] + static_cast<int>(blocks);
        }
        const Grid grid{.blocks_x = kernel.first_block[most_ranges], .threads = Update::max_threads};
        FINCH_CUDA(launch(stream, grid, kernel));
    }
}

template <class Rule, int states>
void update(cudaStream_t stream, const Arena& arena) {
    if (arena.is_aligned()) {
        update<Rule, states, 4>(stream, arena);
    } else {
        update<Rule, states, 1>(stream, arena);
    }
}

}  // namespace

void launch_next_step(cudaStream_t stream, const StepView& step) {
    FINCH_CUDA(launch(stream, {.threads = 1}, NextStep{.step = step}));
}

/// Uses enqueue(), not launch(): this kernel must not be part of a recorded step.
void launch_set_gang_steps(cudaStream_t stream, GangSteps* steps, const std::array<std::int32_t, most_members>& left) {
    SetGangSteps kernel{.steps = steps, .left = {}};
    std::copy(left.begin(), left.end(), kernel.left);
    FINCH_CUDA(enqueue(stream, {.threads = 32}, kernel));
}

void launch_load_batch(cudaStream_t stream, const StepView& step, float* out) {
    if (step.distortions.any() || step.float_pixels != 0) {
        FINCH_CUDA(
            launch(stream, grid_for(step.batch * step.pixels_per_image), LoadEachPixel{.step = step, .out = out}));
        return;
    }
    const bool aligned = step.pixels_per_image % 4 == 0 &&
                         reinterpret_cast<std::uintptr_t>(step.pixels) % sizeof(uchar4) == 0 &&
                         reinterpret_cast<std::uintptr_t>(out) % sizeof(float4) == 0;
    if (aligned) {
        load_batch<4>(stream, step, out);
    } else {
        load_batch<1>(stream, step, out);
    }
}

void launch_softmax_cross_entropy(cudaStream_t stream, const StepView& step, const float* logits, std::int64_t classes,
                                  float* grad) {
    // Many lanes per sample make a small batch fast. A large batch uses few lanes per sample, so that no lane is idle.
    if (classes > 32) {
        softmax_cross_entropy<32>(stream, step, logits, classes, grad);
    } else if (step.batch <= 32) {
        softmax_cross_entropy<16>(stream, step, logits, classes, grad);
    } else {
        softmax_cross_entropy<4>(stream, step, logits, classes, grad);
    }
}

void launch_regression_loss(cudaStream_t stream, const StepView& step, Regression kind, const float* predictions,
                            std::int64_t outputs, float* grad) {
    const auto threads =
        static_cast<int>(std::min<std::int64_t>(RegressionLoss::max_threads, groups_of(step.batch * outputs, 32) * 32));
    FINCH_CUDA(launch(
        stream, {.threads = threads, .shared_bytes = static_cast<std::size_t>(threads / 32) * sizeof(BlockSums)},
        RegressionLoss{.step = step, .kind = kind, .predictions = predictions, .outputs = outputs, .grad = grad}));
}

void launch_unscale(cudaStream_t stream, StepState* state, float* grads, std::size_t count) {
    const auto floats = static_cast<std::int64_t>(count);
    FINCH_CUDA(launch(stream, grid_for(floats), Unscale{.state = state, .grads = grads, .count = floats}));
    FINCH_CUDA(launch(stream, {.threads = 1}, DecideOnStep{.state = state}));
}

void launch_clip_norm(cudaStream_t stream, float* grads, std::size_t count, double most, double* scratch) {
    const auto values = static_cast<std::int64_t>(count);
    constexpr int threads = SquareSums::max_threads;
    static_assert(SquareSums::most_blocks * sizeof(double) <= Device::clip_scratch * sizeof(float));
    const auto blocks =
        static_cast<int>(std::clamp<std::int64_t>(groups_of(values, threads), 1, SquareSums::most_blocks));
    FINCH_CUDA(launch(stream, {.blocks_x = blocks, .threads = threads, .shared_bytes = threads * sizeof(double)},
                      SquareSums{.values = grads, .count = values, .partial = scratch}));
    Grid grid = grid_for(values);
    grid.shared_bytes = static_cast<std::size_t>(blocks) * sizeof(double);
    FINCH_CUDA(
        launch(stream, grid,
               ScaleToNorm{.values = grads, .count = values, .most = most, .parts = blocks, .partial = scratch}));
}

void launch_optimizer_step(cudaStream_t stream, const Optimizer& optimizer, std::span<const ParameterRange> ranges,
                           const StepState* state, float* parameters, const float* grads, float* state_a,
                           float* state_b) {
    const Arena arena{state, ranges, parameters, grads, state_a, state_b};
    std::visit(
        [&]<class Rule>(const Rule& rule) {
            switch (rule.states()) {
                case 0:
                    return update<Rule, 0>(stream, arena);
                case 1:
                    return update<Rule, 1>(stream, arena);
                default:
                    return update<Rule, 2>(stream, arena);
            }
        },
        optimizer);
}

void launch_average(cudaStream_t stream, const StepState* state, const float* values, float* averages,
                    std::size_t count) {
    const auto floats = static_cast<std::int64_t>(count);
    FINCH_CUDA(launch(stream, grid_for(floats),
                      AverageUpdate{.state = state, .values = values, .averages = averages, .count = floats}));
}

}  // namespace finch::backend::cuda
