#pragma once

#include <cstdint>

namespace finch::backend::cpu {

/// Memory that will be needed, asked for a few lines at a time while something else is computed.
struct Ahead {
    const float* next = nullptr;
    std::int64_t lines = 0;  ///< each time

    static constexpr std::int64_t line = 16;  ///< floats

    Ahead() = default;
    /// So much each time that `count` floats from `begin` on take `times` times.
    Ahead(const float* begin, std::int64_t count, std::int64_t times)
        : next(begin), lines((count / line + times - 1) / times) {}
};

/// Inline, since a function that only asks for memory is one without effect to the compiler, which leaves its calls
/// out.
template <int for_writing = 0>
__attribute__((always_inline)) inline void fetch(Ahead& ahead) {
    for (std::int64_t k = 0; k < ahead.lines; ++k) {
        __builtin_prefetch(ahead.next, for_writing);
        ahead.next += Ahead::line;
    }
}

}  // namespace finch::backend::cpu
