#pragma once

#include "step_row.hpp"

#include <climits>
#include <cmath>
#include <cstdint>
#include <kernel_launch.hpp>

namespace finch::backend::cuda {

/// Softmax cross-entropy, its gradient, and how many samples were right. One block, so that all sums have one order;
/// `lanes` (a power of two up to 32) neighbouring threads share a sample. The block's threads are a multiple of 32;
/// shared memory: one BlockSums per warp.
template <int lanes>
struct SoftmaxCrossEntropy {
    static constexpr int max_threads = 512;
    StepView step;
    const float* logits;  ///< (batch, classes)
    std::int64_t classes;
    float* grad;  ///< (batch, classes) or null

    struct BlockSums {
        double loss;
        int correct;
        int samples;
    };

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t* indices = step.present_indices();
        const float grad_scale = step.state->current.grad_scale;
        const int groups = thread.count() / lanes;
        BlockSums own{0.0, 0, 0};
        for (std::int64_t first = 0; first < step.batch; first += groups) {
            // All lanes of a warp take part in its shuffles, those behind the last sample with the last one's numbers.
            const std::int64_t wanted = first + thread.index() / lanes;
            const bool there = wanted < step.batch;
            const std::int64_t sample = there ? wanted : step.batch - 1;
            const std::int64_t index = there ? indices[sample] : -1;
            one_sample(thread, sample, index, there, grad_scale, own);
        }
        const BlockSums sums = block_sums(thread, own);
        if (thread.index() == 0) {
            step.state->sums.loss += sums.loss;
            step.state->sums.correct += sums.correct;
            step.state->sums.samples += sums.samples;
        }
    }

private:
    /// The first largest entry.
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
        const int label = index < 0 ? -1 : step.labels[index];
        const auto smoothing = static_cast<double>(step.state->current.label_smoothing);
        const double spread = smoothing / static_cast<double>(classes);
        double logits_sum = 0;
        if (smoothing > 0) {
            for (int c = lane; c < classes; c += lanes) {
                logits_sum += static_cast<double>(row[c]);
            }
            FINCH_UNROLL for (int mask = 1; mask < lanes; mask *= 2) {
                logits_sum += thread.shuffle_xor(logits_sum, mask);
            }
        }
        if (index >= 0 && lane == 0) {
            own.loss += total - (1 - smoothing) * static_cast<double>(row[label]) - spread * logits_sum;
            own.correct += largest.column == label ? 1 : 0;
            own.samples += 1;
        }
        if (grad != nullptr && there) {
            for (int c = lane; c < classes; c += lanes) {
                const double target = (c == label ? 1 - smoothing : 0.0) + spread;
                const double share = exp(static_cast<double>(row[c]) - total) - target;
                grad[sample * classes + c] =
                    index < 0 ? 0.0F : static_cast<float>(share * static_cast<double>(grad_scale));
            }
        }
    }

    /// A first entry that is not a number is the largest, and others never are: as std::max_element has it. Where there
    /// is such an entry only lane 0's answer is meant; sums of all lanes are not numbers then anyway.
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

    /// The sums over all threads, for thread 0. A tree over each warp, then one over the warps.
    template <class Thread>
    FINCH_DEVICE BlockSums block_sums(Thread& thread, BlockSums own) const {
        auto* of_warps = thread.template shared<BlockSums>();
        own = warp_sums(thread, own);
        if (thread.index() % 32 == 0) {
            of_warps[thread.index() / 32] = own;
        }
        thread.sync();
        const BlockSums nothing{0.0, 0, 0};
        return warp_sums(thread, thread.index() < thread.count() / 32 ? of_warps[thread.index()] : nothing);
    }

    template <class Thread>
    FINCH_DEVICE BlockSums warp_sums(Thread& thread, BlockSums sums) const {
        FINCH_UNROLL for (int mask = 1; mask < 32; mask *= 2) {
            sums.loss += thread.shuffle_xor(sums.loss, mask);
            sums.correct += thread.shuffle_xor(sums.correct, mask);
            sums.samples += thread.shuffle_xor(sums.samples, mask);
        }
        return sums;
    }
};

}  // namespace finch::backend::cuda
