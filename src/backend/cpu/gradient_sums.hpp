#pragma once

#include "finch/backend/operation.hpp"

#include "elementwise.hpp"
#include "slices.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace finch::backend::cpu {

/// The sums from which a kernel computes the gradients of its parameters, in the kernel's own layout. Each thread has
/// sums of its own. The sums are kept over the blocks of a batch.
class GradientSums {
public:
    explicit GradientSums(std::int64_t size) : size_(size) {}

    /// Calls add(begin, end, sums) in each thread with the range of the thread's items. The first block clears the
    /// sums. The last block adds the sums of the threads in a fixed order.
    template <class Add>
    void add(const Pass& pass, std::int64_t items, Add add) {
        const std::int64_t slices = slice_count(items, 1);
        if (slices > slices_) {
            sums_ = AlignedFloats(slices * size_);
            slices_ = slices;
        }
        for_slices(items, 1, [&](std::size_t slice, std::int64_t begin, std::int64_t end) {
            float* const own = sums_.data() + static_cast<std::int64_t>(slice) * size_;
            if (pass.is_first_block) {
                std::fill_n(own, size_, 0.0F);
            }
            add(begin, end, own);
        });
        for (std::int64_t slice = 1; pass.is_last_block && slice < slices; ++slice) {
            accumulate(sums_.data() + slice * size_, sums_.data(), static_cast<std::size_t>(size_));
        }
    }
    /// Valid after the last block.
    [[nodiscard]] const float* total() const { return sums_.data(); }

private:
    std::int64_t size_;
    std::int64_t slices_ = 0;
    AlignedFloats sums_ = AlignedFloats(0);
};

}  // namespace finch::backend::cpu
