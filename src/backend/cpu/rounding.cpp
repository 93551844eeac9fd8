#include "rounding.hpp"

#include "elementwise.hpp"
#include "library.hpp"
#include "slices.hpp"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace finch::backend::cpu {

#if defined(__x86_64__)
namespace {

constexpr std::int64_t least = 1 << 15;  ///< minimum count of numbers per thread

__attribute__((target("avx512f,avx512bw,avx512bf16"))) void round(const float* from, Bfloat16* to, std::size_t count) {
    constexpr std::size_t at_once = 32;
    for (; count >= at_once; count -= at_once, from += at_once, to += at_once) {
        const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + at_once / 2), _mm512_loadu_ps(from));
        _mm512_storeu_si512(to, reinterpret_cast<const __m512i&>(both));
    }
    if (count > 0) {
        const std::uint32_t rest = (std::uint32_t{1} << count) - 1;
        const __m512bh both =
            _mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(static_cast<__mmask16>(rest >> at_once / 2), from + at_once / 2),
                                _mm512_maskz_loadu_ps(static_cast<__mmask16>(rest), from));
        _mm512_mask_storeu_epi16(to, rest, reinterpret_cast<const __m512i&>(both));
    }
}

}  // namespace

bool has_bfloat16() noexcept {
    return may_use(dnnl::cpu_isa::avx512_core_bf16);
}

void round_to_bfloat16(const float* from, Bfloat16* to, std::size_t count) {
    for_slices(static_cast<std::int64_t>(count), least, [&](std::size_t, std::int64_t begin, std::int64_t end) {
        round(from + begin, to + begin, static_cast<std::size_t>(end - begin));
    });
}

void round_derivative(Activation activation, const float* y, const float* grad_y, Bfloat16* to, std::size_t count) {
    constexpr std::int64_t block = 2048;  // fits in the nearest cache
    for_slices(static_cast<std::int64_t>(count), least, [&](std::size_t, std::int64_t begin, std::int64_t end) {
        alignas(64) std::array<float, block> before;
        for (std::int64_t at = begin; at < end; at += block) {
            const auto size = static_cast<std::size_t>(std::min(block, end - at));
            std::copy_n(grad_y + at, size, before.begin());
            apply_derivative(activation, y + at, before.data(), size);
            round(before.data(), to + at, size);
        }
    });
}

#else

bool has_bfloat16() noexcept {
    return false;
}
void round_to_bfloat16(const float*, Bfloat16*, std::size_t) {}
void round_derivative(Activation, const float*, const float*, Bfloat16*, std::size_t) {}

#endif

}  // namespace finch::backend::cpu
