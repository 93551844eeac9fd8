#pragma once

#include "finch/base/portable.hpp"

#include <cstdint>

namespace finch {

struct PhiloxCounter {
    std::uint32_t word[4];
    bool operator==(const PhiloxCounter&) const = default;
};
struct PhiloxKey {
    std::uint32_t word[2];
};

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011). Returns four
/// random words that depend only on a 128-bit counter and a 64-bit key.
[[nodiscard]] FINCH_PORTABLE PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53} * counter.word[0];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter.word[2];
        counter = {{static_cast<std::uint32_t>(b >> 32) ^ counter.word[1] ^ key.word[0], static_cast<std::uint32_t>(b),
                    static_cast<std::uint32_t>(a >> 32) ^ counter.word[3] ^ key.word[1],
                    static_cast<std::uint32_t>(a)}};
        key.word[0] += 0x9E3779B9;  // golden ratio
        key.word[1] += 0xBB67AE85;  // √3 − 1
    }
    return counter;
}

}  // namespace finch
