#pragma once

#include "kernels/batch_norm.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace finch::backend::cuda {

/// The whole of forward or backward, as one cooperative kernel or two halves (HalfKernel). In float32 and with several
/// ranks, BatchNormTotals and the sum over the ranks are between the halves; that sum is the only part of the second
/// half's `partial`. In validation only the second half runs, with the running statistics. Grid: see RowCut. In a
/// cooperative kernel, each thread keeps the first `kept` of its rows in shared memory between the sums and the
/// results, so that they are read once. `kept` does not change the bits.
template <class X, class Y, int width, bool is_backward>
struct PersistentBatchNorm {
    using Row = BatchNormRow<X, Y, width>;
    static constexpr bool is_cooperative = true;
    static constexpr int max_threads = RowCut::threads;
    static constexpr std::size_t kept_row_bytes =
        max_threads * width * (sizeof(X) + (is_backward ? sizeof(Y) : std::size_t{0}));
    /// Those of sum_rows(), or of find_factors().
    static constexpr std::size_t sums_bytes =
        std::max(max_threads * std::size_t{2 * width} * sizeof(double),
                 max_threads * 2 * sizeof(double) + (std::size_t{width} << RowCut::most_lane_bits) * 5 * sizeof(float));
    const StepState* state;  ///< null in validation: no padding, no sums
    std::int64_t pixels, rows;
    RowCut cut;
    int parts, kept;
    BatchNormGradient<X, Y, width> gradient;
    BatchNormStatistics statistics;
    double* partial;             ///< (parts, 2, channels): Σ x and Σ x² or, in backward, Σ grad and Σ grad · x
    const double* total_values;  ///< of all ranks; null: those of this step
    float* grad_parameters;      ///< of backward: weight, bias; null if BatchNormTotals writes them
    std::conditional_t<is_backward, X, Y>* results;

    /// Computes `partial`.
    template <class Thread>
    FINCH_DEVICE void before_grid_sync(Thread& thread) const {
        const RowShare share(thread, cut, state->current.samples * pixels, width);
        BatchNormFactors<width> of{};
        if (is_backward && share.channel < cut.channels) {
            of = {statistics.memory.factors, cut.channels, share.channel, false};
        }
        int number = 0;  // of the thread's row
        sum_rows<2, width, std::is_same_v<X, float> ? 4 : 8, double, BatchNormTerm<X>>(
            thread, share, cut, partial, [&](std::int64_t element) { return gradient.read(element); },
            [&](std::int64_t element, const Row& row, BatchNormTerm<X>(&terms)[2][width]) {
                if (number < kept) {
                    store(row.x, kept_x(thread, number));
                    if constexpr (is_backward) {
                        store(row.grad, kept_grad(thread, number));
                    }
                }
                if constexpr (is_backward) {
                    add_terms(gradient.at(element, row, of), row.x, terms);
                } else {
                    add_terms(row.x, row.x, terms);
                }
                ++number;
            });
    }

    /// Computes the factors, then `results` (rows, channels). If `results` is null, only the parameters' gradients are
    /// written.
    template <class Thread>
    FINCH_DEVICE void after_grid_sync(Thread& thread) const {
        float* factors = find_factors(thread);
        const std::int64_t real = state == nullptr ? rows : state->current.samples * pixels;
        const RowShare share(thread, cut, rows, width);
        if (share.channel >= cut.channels || results == nullptr) {
            return;
        }
        const BatchNormFactors<width> of(factors, width << cut.lane_bits, share.lane * width, is_backward);
        const auto write = [&](std::int64_t row, const Row& values) {
            const std::int64_t element = row * cut.channels + share.channel;
            Vector<std::conditional_t<is_backward, X, Y>, width> result{};
            if (row < real) {
                if constexpr (is_backward) {
                    result = gradient.of_x(element, values, of);
                } else {
                    result = of.template normalise<Y>(gradient.activation, values.x);
                }
            }
            store(result, results + element);
        };
        // The rows that are not kept, backwards: the last ones may still be in the L2 cache.
        constexpr int together = 4;
        const std::int64_t others = share.first + kept * std::int64_t{share.step};
        const std::int64_t group_rows = together * std::int64_t{share.step};
        for (std::int64_t group = (share.end - others + group_rows - 1) / group_rows - 1; group >= 0; --group) {
            const std::int64_t first = others + group * group_rows;
            if (first >= share.end) {
                continue;  // no row of the group is this thread's
            }
            const auto values =
                read_rows<together>(share, cut, first, [&](std::int64_t element) { return gradient.read(element); });
            FINCH_UNROLL for (int i = 0; i < together; ++i) {
                if (first + i * share.step < share.end) {
                    write(first + i * share.step, values.of[i]);
                }
            }
        }
        std::int64_t row = share.first;
        for (int number = 0; number < kept && row < share.end; ++number, row += share.step) {
            Row values{load<width>(kept_x(thread, number)), {}};
            if constexpr (is_backward) {
                values.grad = load<width>(kept_grad(thread, number));
            }
            write(row, values);
        }
    }

private:
    template <class Thread>
    [[nodiscard]] FINCH_DEVICE X* kept_x(const Thread& thread, int number) const {
        auto* row = thread.template shared<unsigned char>() + sums_bytes + number * kept_row_bytes;
        return reinterpret_cast<X*>(row) + thread.index() * width;
    }
    template <class Thread>
    [[nodiscard]] FINCH_DEVICE Y* kept_grad(const Thread& thread, int number) const {
        auto* row = thread.template shared<unsigned char>() + sums_bytes + number * kept_row_bytes;
        return reinterpret_cast<Y*>(row + max_threads * width * sizeof(X)) + thread.index() * width;
    }

    /// Adds the sums of all parts for the block's channels. Returns their factors (5, channels of the block) in shared
    /// memory. Only blocks of the first part write the statistics or the parameters' gradients.
    template <class Thread>
    [[nodiscard]] FINCH_DEVICE float* find_factors(Thread& thread) const {
        const int columns = width << cut.lane_bits;
        const int column = thread.index() % columns;
        const std::int64_t channel = static_cast<std::int64_t>(thread.block_x()) * columns + column;
        double sum = 0;
        double product = 0;
        if (channel < cut.channels) {
            for (int part = thread.index() / columns; part < parts; part += max_threads / columns) {
                sum += partial[part * 2 * cut.channels + channel];
                product += partial[part * 2 * cut.channels + cut.channels + channel];
            }
        }
        auto* shared = thread.template shared<double>();  // (2, threads), then the factors
        auto* factors = reinterpret_cast<float*>(shared + 2 * max_threads);
        shared[thread.index()] = sum;
        shared[max_threads + thread.index()] = product;
        thread.sync();
        if (thread.index() < columns && channel < cut.channels) {
            for (int of = thread.index() + columns; of < max_threads; of += columns) {
                sum += shared[of];
                product += shared[max_threads + of];
            }
            finish(channel, sum, product, thread.block_y() == 0, factors + column, columns);
        }
        thread.sync();
        return factors;
    }

    FINCH_DEVICE void finish(std::int64_t channel, double sum, double product, bool is_first, float* factors,
                             int columns) const {
        const double total = state == nullptr          ? 0.0
                             : total_values == nullptr ? static_cast<double>(state->current.samples * pixels)
                                                       : *total_values;
        if constexpr (is_backward) {
            const double normalised = statistics.normalised_sum(channel, sum, product);
            for (int k = 0; k < 3; ++k) {
                factors[k * columns] = statistics.memory.factors[k * cut.channels + channel];
            }
            statistics.set_grad_factors(channel, sum, normalised, total, factors, columns);
            if (is_first && grad_parameters != nullptr) {
                statistics.set_gradients(channel, sum, normalised, grad_parameters);
            }
        } else {
            const auto moments = statistics.moments(channel, sum, product, total);
            statistics.set_factors(channel, moments, factors, columns);
            if (is_first && state != nullptr) {
                statistics.keep(channel, moments, total);
            }
        }
    }
};

}  // namespace finch::backend::cuda
