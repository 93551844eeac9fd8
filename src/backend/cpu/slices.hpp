#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <omp.h>
#include <vector>

namespace finch::backend::cpu {

/// Floats in memory that begins at a cache line. They are not initialised.
class AlignedFloats {
public:
    explicit AlignedFloats(std::int64_t count)
        : data_(static_cast<float*>(::operator new(static_cast<std::size_t>(count) * sizeof(float), alignment))) {}
    [[nodiscard]] float* data() const { return data_.get(); }

private:
    static constexpr std::align_val_t alignment{64};
    struct Free {
        void operator()(float* data) const { ::operator delete(data, alignment); }
    };
    std::unique_ptr<float, Free> data_;
};

/// Returns memory of the calling thread for `count` floats. The next call overwrites or frees it.
[[nodiscard]] inline float* workspace(std::int64_t count) {
    thread_local std::int64_t size = 0;
    thread_local AlignedFloats memory(0);
    if (count > size) {
        memory = AlignedFloats(0);
        size = 0;
        memory = AlignedFloats(count);
        size = count;
    }
    return memory.data();
}

/// Returns the number of threads that share `items`. With several threads, each gets at least `least` items.
[[nodiscard]] inline std::int64_t slice_count(std::int64_t items, std::int64_t least) {
    return std::clamp<std::int64_t>(items / least, 1, omp_get_max_threads());
}

/// Calls `work(slice, begin, end)` in each thread with the range of the thread's items.
template <class Work>
void for_slices(std::int64_t items, std::int64_t least, Work work) {
    const std::int64_t slices = slice_count(items, least);
#pragma omp parallel for schedule(static) num_threads(static_cast <int>(slices)) if (slices > 1)
    for (std::int64_t slice = 0; slice < slices; ++slice) {
        work(static_cast<std::size_t>(slice), items * slice / slices, items * (slice + 1) / slices);
    }
}

/// Returns `size` sums over all items. `add(begin, end, sums)` must add the items of a range to `sums`. The sums of the
/// ranges are then added in a fixed order.
template <class Add>
[[nodiscard]] std::vector<double> sum_slices(std::int64_t items, std::int64_t least, std::size_t size, Add add) {
    std::vector<double> partial(static_cast<std::size_t>(slice_count(items, least)) * size);
    for_slices(items, least, [&](std::size_t slice, std::int64_t begin, std::int64_t end) {
        add(begin, end, partial.data() + slice * size);
    });
    std::vector<double> sums(size);
    for (std::size_t i = 0; i < partial.size(); ++i) {
        sums[i % size] += partial[i];
    }
    return sums;
}

}  // namespace finch::backend::cpu
