#pragma once

#include "kernel_launch.hpp"
#include "step_row.hpp"

#include <climits>
#include <cmath>
#include <cstdint>

namespace finch::backend::cuda {

/// The loss and the numbers of samples, summed over one thread or over all threads of a block.
struct BlockSums {
    double loss;
    int correct;
    int samples;
};

template <class Thread>
FINCH_DEVICE BlockSums warp_sums(Thread& thread, BlockSums sums) {
    FINCH_UNROLL for (int mask = 1; mask < 32; mask *= 2) {
        sums.loss += thread.shuffle_xor(sums.loss, mask);
        sums.correct += thread.shuffle_xor(sums.correct, mask);
        sums.samples += thread.shuffle_xor(sums.samples, mask);
    }
    return sums;
}

/// Sums `own` over all threads of the block, first as a tree over each warp, then as a tree over the warps. Adds the
/// result to state.sums, and increments state.row. Shared memory: one BlockSums per warp.
template <class Thread>
FINCH_DEVICE void end_step(Thread& thread, BlockSums own, StepState& state) {
    auto* of_warps = thread.template shared<BlockSums>();
    own = warp_sums(thread, own);
    if (thread.index() % 32 == 0) {
        of_warps[thread.index() / 32] = own;
    }
    thread.sync();
    const BlockSums nothing{0.0, 0, 0};
    const BlockSums sums = warp_sums(thread, thread.index() < thread.count() / 32 ? of_warps[thread.index()] : nothing);
    if (thread.index() == 0) {
        state.sums.loss += sums.loss;
        state.sums.correct += sums.correct;
        state.sums.samples += sums.samples;
        state.row += 1;
    }
}

/// The kernel for softmax cross-entropy, its gradient, and the predicted classes. The kernel runs
/// in one block, so that all sums have one order. `lanes` neighbouring threads share a sample; `lanes` is a power of
/// two up to 32. The number of threads must be a multiple of 32. Shared memory: one BlockSums per warp.
template <int lanes>
struct SoftmaxCrossEntropy {
    static constexpr int max_threads = 512;
    static constexpr bool ends_step = true;
    static constexpr int least_blocks = 1;
    StepView step;
    const float* logits;  ///< (batch, classes)
    std::int64_t classes;
    float* grad;  ///< (batch, classes) or null

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t* indices = step.present_indices();
        const float grad_scale = step.state->current.grad_scale;
        const int groups = thread.count() / lanes;
        BlockSums own{0.0, 0, 0};
        for (std::int64_t first = 0; first < step.batch; first += groups) {
            // All lanes of a warp must take part in shuffle_xor(). Lanes without a sample therefore repeat the last
            // sample, without effect.
            const std::int64_t wanted = first + thread.index() / lanes;
            const bool there = wanted < step.batch;
            const std::int64_t sample = there ? wanted : step.batch - 1;
            const std::int64_t index = there ? indices[sample] : -1;
            one_sample(thread, sample, index, there, grad_scale, own);
        }
        end_step(thread, own, *step.state);
    }

private:
    /// The largest entry of a row; the first of them if several entries are equal.
    struct Largest {
        float value;
        int column;
    };

    template <class Thread>
    FINCH_DEVICE void one_sample(Thread& thread, std::int64_t sample, std::int64_t index, bool there, float grad_scale,
                                 BlockSums& own) const {
        const float* row = logits + sample * classes;
        const int lane = thread.index() % lanes;
        const Largest largest = largest_of(thread, row, lane);
        double sum = 0;
        for (int c = lane; c < classes; c += lanes) {
            sum += exp(static_cast<double>(row[c]) - static_cast<double>(largest.value));
        }
        FINCH_UNROLL for (int mask = 1; mask < lanes; mask *= 2) {
            sum += thread.shuffle_xor(sum, mask);
        }
        const double total = static_cast<double>(largest.value) + log(sum);
        const int label = index < 0 ? 0 : step.label(index);
        const auto smoothing = static_cast<double>(step.state->current.label_smoothing);
        const double spread = smoothing / static_cast<double>(classes);
        // The loss is Σ target · (total − logit). All lanes together sum the part of the targets that label smoothing
        // spreads over all classes.
        Spread spread_out{0, 0};
        if (smoothing > 0) {
            spread_out = spread_over(thread, row, lane, spread);
        }
        const double all = step.class_weights == nullptr ? 1 : (1 - smoothing) * weight(label) + spread_out.targets;
        if (index >= 0 && lane == 0) {
            own.loss +=
                all * total - (1 - smoothing) * weight(label) * static_cast<double>(row[label]) - spread_out.logits;
            own.correct += largest.column == label ? 1 : 0;
            step.present_predictions()[sample] = largest.column;
            own.samples += 1;
        }
        if (grad != nullptr && there) {
            for (int c = lane; c < classes; c += lanes) {
                const double target = ((c == label ? 1 - smoothing : 0.0) + spread) * weight(c);
                const double share = all * exp(static_cast<double>(row[c]) - total) - target;
                grad[sample * classes + c] =
                    index < 0 ? 0.0F : static_cast<float>(share * static_cast<double>(grad_scale));
            }
        }
    }

    [[nodiscard]] FINCH_DEVICE double weight(int label) const {
        return step.class_weights == nullptr ? 1.0 : static_cast<double>(step.class_weights[label]);
    }

    /// The part of the targets that label smoothing spreads over all classes: the sum of the targets, and the sum of
    /// target · logit.
    struct Spread {
        double targets;
        double logits;
    };
    template <class Thread>
    FINCH_DEVICE Spread spread_over(Thread& thread, const float* row, int lane, double spread) const {
        Spread sum{0, 0};
        for (int c = lane; c < classes; c += lanes) {
            sum.targets += spread * weight(c);
            sum.logits += spread * weight(c) * static_cast<double>(row[c]);
        }
        FINCH_UNROLL for (int mask = 1; mask < lanes; mask *= 2) {
            sum.targets += thread.shuffle_xor(sum.targets, mask);
            sum.logits += thread.shuffle_xor(sum.logits, mask);
        }
        return sum;
    }

    /// Returns the same entry as std::max_element: a NaN counts as the largest entry only if it is the first entry. If
    /// the first entry is NaN, only the result of lane 0 is valid. This does no harm, because the first entry makes all
    /// sums over the lanes NaN.
    template <class Thread>
    FINCH_DEVICE Largest largest_of(Thread& thread, const float* row, int lane) const {
        Largest best{lane == 0 ? row[0] : -INFINITY, lane == 0 ? 0 : INT_MAX};
        for (int c = lane; c < classes; c += lanes) {
            if (row[c] > best.value) {
                best = {row[c], c};
            }
        }
        FINCH_UNROLL for (int mask = 1; mask < lanes; mask *= 2) {
            const Largest other{thread.shuffle_xor(best.value, mask), thread.shuffle_xor(best.column, mask)};
            if (other.value > best.value || (other.value == best.value && other.column < best.column)) {
                best = other;
            }
        }
        return best;
    }
};

/// The kernel for squared or absolute errors of predictions and their gradient. The kernel runs in one block, so that
/// all sums have one order. With n threads, thread t processes the predictions t, t + n, t + 2n and so on.
struct RegressionLoss {
    static constexpr int max_threads = 512;
    static constexpr bool ends_step = true;
    StepView step;
    Regression kind;
    const float* predictions;  ///< (batch, outputs)
    std::int64_t outputs;
    float* grad;  ///< (batch, outputs) or null

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t* indices = step.present_indices();
        const double share = 1 / static_cast<double>(outputs);
        const auto grad_scale = static_cast<double>(step.state->current.grad_scale);
        BlockSums own{0.0, 0, 0};
        for (std::int64_t i = thread.index(); i < step.batch * outputs; i += thread.count()) {
            const std::int64_t index = indices[i / outputs];
            const std::int64_t output = i % outputs;
            double slope = 0;
            if (index >= 0) {
                const double difference =
                    static_cast<double>(predictions[i]) - static_cast<double>(step.target(index, outputs)[output]);
                const bool squared = kind == Regression::squared;
                own.loss += share * (squared ? difference * difference : fabs(difference));
                own.samples += output == 0 ? 1 : 0;
                slope = squared ? 2 * difference : static_cast<double>((difference > 0) - (difference < 0));
            }
            if (grad != nullptr) {
                grad[i] = static_cast<float>(slope * share * grad_scale);
            }
        }
        end_step(thread, own, *step.state);
    }
};

}  // namespace finch::backend::cuda
