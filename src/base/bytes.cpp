#include "finch/base/bytes.hpp"

#include <array>

namespace finch {
namespace {

constexpr std::uint32_t castagnoli = 0x82F63B78;  // reflected polynomial

/// tables[k][b] is the CRC of byte b followed by k zero bytes. With these tables, one iteration processes eight bytes
/// (Kounavis and Berry 2005).
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t b = 0; b < 256; ++b) {
        std::uint32_t crc = b;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? castagnoli : 0);
        }
        tables[0][b] = crc;
    }
    for (std::size_t k = 1; k < 8; ++k) {
        for (std::size_t b = 0; b < 256; ++b) {
            const std::uint32_t before = tables[k - 1][b];
            tables[k][b] = (before >> 8) ^ tables[0][before & 0xFF];
        }
    }
    return tables;
}

constexpr Tables tables = make_tables();

#if defined(__x86_64__)
/// Computes the CRC with the SSE 4.2 instruction for this polynomial. The size of `words` is a multiple of 8 bytes. The
/// argument `inverted` and the result are bitwise complements of a CRC.
__attribute__((target("sse4.2"))) std::uint32_t add_words(std::span<const std::byte> words,
                                                          std::uint32_t inverted) noexcept {
    std::uint64_t crc = inverted;
    for (; !words.empty(); words = words.subspan(8)) {
        std::uint64_t word = 0;
        std::memcpy(&word, words.data(), 8);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    return static_cast<std::uint32_t>(crc);
}
#endif

}  // namespace

std::uint32_t detail::crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
    crc = ~crc;
    while (bytes.size() >= 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), 8);
        word ^= crc;
        crc = 0;
        for (std::size_t k = 0; k < 8; ++k) {
            crc ^= tables[7 - k][(word >> (8 * k)) & 0xFF];
        }
        bytes = bytes.subspan(8);
    }
    for (const std::byte b : bytes) {
        crc = (crc >> 8) ^ tables[0][(crc ^ static_cast<std::uint32_t>(b)) & 0xFF];
    }
    return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2") != 0) {
        const std::size_t words = bytes.size() / 8 * 8;
        crc = ~add_words(bytes.first(words), ~crc);
        bytes = bytes.subspan(words);
    }
#endif
    return detail::crc32c_by_tables(bytes, crc);
}

}  // namespace finch
