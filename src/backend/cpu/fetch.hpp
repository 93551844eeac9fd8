#pragma once

#include <cstdint>

namespace finch::backend::cpu {

/// A memory range that is prefetched a few cache lines at a time while other work is computed.
struct Ahead {
    const float* next = nullptr;
    std::int64_t lines = 0;  ///< per fetch()

    static constexpr std::int64_t line = 16;  ///< floats

    Ahead() = default;
    /// Chooses `lines` such that `times` calls of fetch() prefetch `count` floats from `begin` on.
    Ahead(const float* begin, std::int64_t count, std::int64_t times)
        : next(begin), lines((count / line + times - 1) / times) {}
};

/// Prefetches the next lines of `ahead`. The function must be inline: to the compiler, a function that only prefetches
/// has no effect, so the compiler would remove the calls.
template <int for_writing = 0>
__attribute__((always_inline)) inline void fetch(Ahead& ahead) {
    for (std::int64_t k = 0; k < ahead.lines; ++k) {
        __builtin_prefetch(ahead.next, for_writing);
        ahead.next += Ahead::line;
    }
}

}  // namespace finch::backend::cpu
