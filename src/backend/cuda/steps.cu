#include "finch/backend/cuda_runtime.hpp"
#include "finch/backend/device.hpp"

#include "grid.hpp"
#include "kernels/clip_norm.hpp"
#include "kernels/load_batch.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/step_state.hpp"
#include "number_of.hpp"
#include "steps.hpp"

#include <algorithm>
#include <span>
#include <type_traits>
#include <variant>

namespace finch::backend::cuda {
namespace {

/// One block with one BlockSums per warp.
Grid grid_of_loss(std::int64_t items, int most_threads) {
    const auto threads = static_cast<int>(std::min<std::int64_t>(most_threads, groups_of(items, 32) * 32));
    return {.threads = threads, .shared_bytes = static_cast<std::size_t>(threads / 32) * sizeof(BlockSums)};
}

/// Launches `kernel`, whose ranges are not set, for most_ranges ranges at a time.
template <class Rule, int states, int width>
void update(cudaStream_t stream, std::span<const ParameterRange> ranges, OptimizerUpdate<Rule, states, width> kernel) {
    while (!ranges.empty()) {
        const std::size_t count = std::min(ranges.size(), std::size_t{most_ranges});
        std::copy_n(ranges.begin(), count, kernel.ranges);
        for (std::size_t i = 0; i < most_ranges; ++i) {
            // A range may begin and end within a group of `width`.
            const auto groups = static_cast<std::int64_t>(kernel.ranges[i].size / width + 2);
            const std::int64_t blocks = i < count ? grid_for(groups).blocks_x : 0;
            kernel.first_block[i + 1] = kernel.first_block[i] + static_cast<int>(blocks);
        }
        const Grid grid{.blocks_x = kernel.first_block[most_ranges], .threads = kernel.max_threads};
        FINCH_CUDA(launch(stream, grid, kernel));
        ranges = ranges.subspan(count);
    }
}

}  // namespace

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
    with_int<1, 4>(aligned ? 4 : 1, [&](auto width) {
        const std::int64_t groups = groups_of(step.pixels_per_image, width.value);
        const auto threads = static_cast<int>(std::min<std::int64_t>(256, groups_of(groups, 32) * 32));
        const std::int64_t parts = groups_of(groups, threads);
        FINCH_CUDA(launch(stream, {.blocks_x = step.batch * parts, .threads = threads},
                          LoadBatch<width.value>{.step = step, .out = out, .parts = static_cast<int>(parts)}));
    });
}

void launch_softmax_cross_entropy(cudaStream_t stream, const StepView& step, const float* logits, std::int64_t classes,
                                  float* grad) {
    // Many lanes per sample make a small batch fast. A large batch uses few lanes per sample, so that no lane is idle.
    with_int<4, 16, 32>(
        classes > 32       ? 32
        : step.batch <= 32 ? 16
                           : 4,
        [&](auto lanes) {
            using Kernel = SoftmaxCrossEntropy<lanes.value>;
            FINCH_CUDA(launch(stream, grid_of_loss(step.batch * lanes.value, Kernel::max_threads),
                              Kernel{.step = step, .logits = logits, .classes = classes, .grad = grad}));
        });
}

void launch_regression_loss(cudaStream_t stream, const StepView& step, Regression kind, const float* predictions,
                            std::int64_t outputs, float* grad) {
    FINCH_CUDA(launch(
        stream, grid_of_loss(step.batch * outputs, RegressionLoss::max_threads),
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
    const auto bits = reinterpret_cast<std::uintptr_t>(parameters) | reinterpret_cast<std::uintptr_t>(grads) |
                      reinterpret_cast<std::uintptr_t>(state_a) | reinterpret_cast<std::uintptr_t>(state_b);
    std::visit(
        [&]<class Rule>(const Rule& rule) {
            const auto update_with = [&](auto states) {
                with_int<1, 4>(bits % sizeof(float4) == 0 ? 4 : 1, [&](auto width) {
                    update(stream, ranges,
                           OptimizerUpdate<Rule, states.value, width.value>{.state = state,
                                                                            .ranges = {},
                                                                            .first_block = {},
                                                                            .parameters = parameters,
                                                                            .grads = grads,
                                                                            .state_a = state_a,
                                                                            .state_b = state_b});
                });
            };
            if constexpr (std::is_same_v<Rule, Sgd>) {
                with_int<0, 1>(rule.states(), update_with);
            } else {
                update_with(std::integral_constant<int, 2>());
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
