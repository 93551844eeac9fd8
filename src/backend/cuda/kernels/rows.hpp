#pragma once

#include "grid.hpp"
#include "kernel_launch.hpp"

#include <algorithm>
#include <cstdint>

namespace finch::backend::cuda {

/// How the blocks and threads of a kernel share a matrix (rows, channels). 2^lane_bits neighbouring threads share a
/// row, `width` channels each. Grid: x = groups of channels, y = parts of the rows.
struct RowCut {
    static constexpr int threads = 256;
    static constexpr int most_lane_bits = 5;
    std::int64_t channels;
    std::int64_t rows_of_part;
    int lane_bits;

    [[nodiscard]] Grid grid(std::int64_t rows, int width) const {
        return {.blocks_x = groups_of(channels, std::int64_t{width} << lane_bits),
                .blocks_y = groups_of(rows, rows_of_part),
                .threads = threads};
    }
};

/// Returns a cut with at most `most_parts` parts and, if possible, at least `rows_of_thread` rows per thread. At most
/// 2^most_lane_bits threads share a row.
inline RowCut cut_rows(std::int64_t rows, std::int64_t channels, int width, std::int64_t rows_of_thread,
                       std::int64_t most_parts, int most_lane_bits = RowCut::most_lane_bits) {
    RowCut cut{.channels = channels, .rows_of_part = 1, .lane_bits = 0};
    while (cut.lane_bits < most_lane_bits && (std::int64_t{width} << cut.lane_bits) < channels) {
        ++cut.lane_bits;
    }
    const std::int64_t least = rows_of_thread * (RowCut::threads >> cut.lane_bits);
    cut.rows_of_part = std::max({groups_of(rows, most_parts), std::min(least, rows), std::int64_t{1}});
    return cut;
}

/// The rows and channels of one thread: the rows first, first + step, … before `end`.
struct RowShare {
    int lane, step;
    std::int64_t channel, first, end;

    template <class Thread>
    FINCH_DEVICE RowShare(const Thread& thread, const RowCut& cut, std::int64_t rows, int width)
        : lane(thread.index() & ((1 << cut.lane_bits) - 1)),
          step(thread.count() >> cut.lane_bits),
          channel(((static_cast<std::int64_t>(thread.block_x()) << cut.lane_bits) + lane) * width),
          first(thread.block_y() * cut.rows_of_part + (thread.index() >> cut.lane_bits)),
          end((thread.block_y() + 1) * cut.rows_of_part < rows ? (thread.block_y() + 1) * cut.rows_of_part : rows) {}
};

/// What read(element) returned for some rows of a thread.
template <class Values, int rows>
struct RowsRead {
    Values of[rows];
};

/// Reads the rows `row`, row + share.step, … at once, so that their reads overlap. Instead of rows behind the last one,
/// `row` is read again.
template <int rows, class Read>
[[nodiscard]] FINCH_DEVICE auto read_rows(const RowShare& share, const RowCut& cut, std::int64_t row,
                                          const Read& read) {
    RowsRead<decltype(read(row)), rows> values;
    FINCH_UNROLL for (int i = 0; i < rows; ++i) {
        const std::int64_t at = row + i * share.step;
        values.of[i] = read((at < share.end ? at : row) * cut.channels + share.channel);
    }
    return values;
}

/// Sums over the rows of each part. Writes the sums to `partial` (parts, sums, channels), in a fixed order. The caller
/// adds the sums of the parts, in another kernel or after a grid barrier. `add(element, values, terms)` adds `width`
/// numbers to terms[sum][k]; `values` is read(element). A thread reads `together` rows at once, adds them in `Term`,
/// and adds the result to a `Sum`. Shared memory: `sums` · `width` `Sum`s per thread.
template <int sums, int width, int together, class Sum, class Term, class Thread, class Read, class Add>
FINCH_DEVICE void sum_rows(Thread& thread, const RowShare& share, const RowCut& cut, Sum* partial, const Read& read,
                           const Add& add) {
    Sum totals[sums][width] = {};
    if (share.channel < cut.channels) {
        for (std::int64_t row = share.first; row < share.end;) {
            auto values = read_rows<together>(share, cut, row, read);
            Term terms[sums][width] = {};
            FINCH_UNROLL for (int i = 0; i < together; ++i, row += share.step) {
                if (row < share.end) {
                    add(row * cut.channels + share.channel, values.of[i], terms);
                }
            }
            FINCH_UNROLL for (int sum = 0; sum < sums; ++sum) {
                FINCH_UNROLL for (int k = 0; k < width; ++k) {
                    totals[sum][k] += static_cast<Sum>(terms[sum][k]);
                }
            }
        }
    }
    auto* shared = thread.template shared<Sum>();  // (rows of a step, sums, channels of the block)
    const int columns = width << cut.lane_bits;
    const int row = thread.index() >> cut.lane_bits;
    FINCH_UNROLL for (int sum = 0; sum < sums; ++sum) {
        FINCH_UNROLL for (int k = 0; k < width; ++k) {
            shared[(row * sums + sum) * columns + share.lane * width + k] = totals[sum][k];
        }
    }
    thread.sync();
    for (int i = thread.index(); i < sums * columns; i += thread.count()) {
        const std::int64_t channel = static_cast<std::int64_t>(thread.block_x()) * columns + i % columns;
        if (channel < cut.channels) {
            Sum total = 0;
            for (int of = 0; of < share.step; ++of) {
                total += shared[of * sums * columns + i];
            }
            partial[(thread.block_y() * sums + i / columns) * cut.channels + channel] = total;
        }
    }
}

}  // namespace finch::backend::cuda
