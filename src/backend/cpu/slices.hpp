#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <omp.h>
#include <vector>

namespace finch::backend::cpu {

/// How many threads share `items`, each of which gets `least` or more.
[[nodiscard]] inline std::int64_t slice_count(std::int64_t items, std::int64_t least) {
    return std::clamp<std::int64_t>(items / least, 1, omp_get_max_threads());
}

/// Calls `work(slice, begin, end)` for the items of each thread.
template <class Work>
void for_slices(std::int64_t items, std::int64_t least, Work work) {
    const std::int64_t slices = slice_count(items, least);
#pragma omp parallel for schedule(static) num_threads(static_cast <int>(slices)) if (slices > 1)
    for (std::int64_t slice = 0; slice < slices; ++slice) {
        work(static_cast<std::size_t>(slice), items * slice / slices, items * (slice + 1) / slices);
    }
}

/// `size` sums over all items, to which `add(begin, end, sums)` adds those of some: slices in a fixed order.
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
