#pragma once

#include "deferred.hpp"
#include "kernel_launch.hpp"
#include "kernels/division.hpp"
#include "kernels/numbers.hpp"

#include <cstddef>
#include <cstdint>

namespace finch::backend::cuda {

/// The last kernel for gradients of weights and biases. Adds the rows of the partial sums of several layers, always
/// in the same order. Grid: x = groups of 32 sums, as many as the largest layer has; y = layers. The number of threads
/// must be max_threads.
struct AddPartials {
    static constexpr int max_threads = 256;
    static constexpr int sharers = max_threads / 32;  ///< threads that share a sum
    static constexpr int shared_floats = max_threads;
    static constexpr int most_layers = 16;
    PartialSums layers[most_layers];

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const PartialSums& of = layers[thread.block_y()];
        auto* shared = thread.template shared<float>();  // (sharers, 32)
        const int i = thread.block_x() * 32 + thread.index() % 32;
        float sum = 0.0F;
        if (i < of.count) {
            for (int row = thread.index() / 32; row < of.rows; row += sharers) {
                sum += of.partial[static_cast<std::size_t>(row) * static_cast<std::size_t>(of.count) +
                                  static_cast<std::size_t>(i)];
            }
        }
        shared[thread.index()] = sum;
        thread.sync();
        if (thread.index() < 32 && i < of.count) {
            float total = 0.0F;
            for (int sharer = 0; sharer < sharers; ++sharer) {
                total += shared[sharer * 32 + thread.index()];
            }
            of.sums[i] = total;
        }
    }
};

/// The kernel that packs the weights of several layers or, if `unpacks`, does the inverse. Grid: x = grid_for() of the
/// largest packed layer; y = layers.
template <class Packed>
struct CopyWeights {
    static constexpr int max_threads = 256;
    static constexpr int most_layers = 16;
    WeightCopy layers[most_layers];
    bool unpacks;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const WeightCopy& of = layers[thread.block_y()];
        for (std::int64_t i = thread.global_index(); i < of.packed_count(); i += thread.global_count()) {
            const MatrixPlace in(i, of.padded_in);
            const MatrixPlace out(in.row, of.taps);
            const bool there = in.column < of.channels_in && out.row < of.channels_out;
            const std::int64_t at = (out.row * of.channels_in + in.column) * of.taps + out.column;  // canonical
            if (!unpacks) {
                const float weight = there ? static_cast<const float*>(of.from)[at] : 0.0F;
                static_cast<Packed*>(of.to)[i] = convert<Packed>(weight);
            } else if (there) {
                static_cast<float*>(of.to)[at] = convert<float>(static_cast<const Packed*>(of.from)[i]);
            }
        }
    }
};

}  // namespace finch::backend::cuda
