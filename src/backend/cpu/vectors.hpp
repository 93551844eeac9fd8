#pragma once

#include <cstdint>

/// Vectors of FINCH_LANES floats, by the vector extensions of GCC and clang: 4 (SSE2, NEON), 8 (AVX2) or 16 (AVX-512).
/// One source is compiled once per instruction set, in a namespace of its own. No inline function of the standard
/// library may be used here: the linker might keep the copy that was compiled for the widest instruction set.
#define FINCH_INLINE __attribute__((always_inline)) inline
#define FINCH_UNROLL _Pragma("GCC unroll 64")

namespace finch::backend::cpu::FINCH_ISA {

constexpr std::int64_t lanes = FINCH_LANES;
using Vector = float __attribute__((vector_size(4 * FINCH_LANES)));
using Mask = std::int32_t __attribute__((vector_size(4 * FINCH_LANES)));
using Unaligned = float __attribute__((vector_size(4 * FINCH_LANES), aligned(4), may_alias));

/// The rows of two vectors of sums that fit in the registers: 32 on AVX-512 and NEON, otherwise 16.
#if FINCH_LANES == 16 || defined(__aarch64__)
constexpr int most_rows = 12;
#else
constexpr int most_rows = 6;
#endif

FINCH_INLINE Vector load(const float* from) {
    return *reinterpret_cast<const Unaligned*>(from);
}
/// Like load(), but keeps the vector in a register. Otherwise GCC may load the vector again for each use.
FINCH_INLINE Vector load_once(const float* from) {
    Vector vector = load(from);
#if defined(__x86_64__)
    asm("" : "+v"(vector));
#elif defined(__aarch64__)
    asm("" : "+w"(vector));
#endif
    return vector;
}
FINCH_INLINE void store(float* to, Vector vector) {
    *reinterpret_cast<Unaligned*>(to) = vector;
}
/// Returns a vector of equal values. A subtraction of zeros is a broadcast, an addition would change −0.
FINCH_INLINE Vector all(float value) {
    return value - Vector{};
}
FINCH_INLINE Vector keep(Vector vector, Mask mask) {
    return reinterpret_cast<Vector>(reinterpret_cast<Mask>(vector) & mask);
}
/// NaN stays NaN.
FINCH_INLINE Vector relu(Vector vector) {
    return vector < 0.0F ? Vector{} : vector;
}
FINCH_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) {
    return a < b ? a : b;
}
FINCH_INLINE std::int64_t larger(std::int64_t a, std::int64_t b) {
    return a > b ? a : b;
}

/// Returns the sum of the lanes. The halves of a vector are added first, so that few additions wait for another.
FINCH_INLINE float sum_of(Vector vector) {
    using Four = float __attribute__((vector_size(16)));
    Four parts[lanes / 4];
    __builtin_memcpy(parts, &vector, sizeof(vector));
    FINCH_UNROLL for (std::int64_t half = lanes / 8; half > 0; half /= 2) {
        FINCH_UNROLL for (std::int64_t k = 0; k < half; ++k) {
            parts[k] += parts[half + k];
        }
    }
    return (parts[0][0] + parts[0][2]) + (parts[0][1] + parts[0][3]);
}

/// `count` channels in vectors. If `count` is not a multiple of the lanes, the last vector overlaps the previous one,
/// so that no vector reaches beyond the last channel. `count` must be at least `lanes`.
FINCH_INLINE std::int64_t vectors_of(std::int64_t count) {
    return (count + lanes - 1) / lanes;
}
FINCH_INLINE std::int64_t first_of(std::int64_t vector, std::int64_t count) {
    return smaller(vector * lanes, count - lanes);
}

/// A product of matrices: to[row][v] (+)= Σ over n < repeats, k < count of a[row · a_row + k · a_k + n · a_repeat] ·
/// b[k · b_k + n · b_repeat + v].
struct Product {
    const float* a;
    std::int64_t a_row, a_k;
    const float* b;
    std::int64_t b_k;
    float* to;
    std::int64_t to_row;
    std::int64_t count;
    std::int64_t repeats = 1, a_repeat = 0, b_repeat = 0;
};

template <int rows, int vectors, bool adds>
__attribute__((noinline)) void multiply(const Product& product) {
    Vector sums[rows * vectors];
    FINCH_UNROLL for (int s = 0; s < rows * vectors; ++s) {
        sums[s] = Vector{};
    }
    for (std::int64_t n = 0; n < product.repeats; ++n) {
        const float* a = product.a + n * product.a_repeat;
        const float* b = product.b + n * product.b_repeat;
        _Pragma("GCC unroll 4") for (std::int64_t k = 0; k < product.count; ++k, a += product.a_k, b += product.b_k) {
            Vector right[vectors];
            FINCH_UNROLL for (int v = 0; v < vectors; ++v) {
                right[v] = load(b + v * lanes);
            }
            FINCH_UNROLL for (int row = 0; row < rows; ++row) {
                const Vector left = all(a[row * product.a_row]);
                FINCH_UNROLL for (int v = 0; v < vectors; ++v) {
                    sums[row * vectors + v] += left * right[v];
                }
            }
        }
    }
    FINCH_UNROLL for (int row = 0; row < rows; ++row) {
        FINCH_UNROLL for (int v = 0; v < vectors; ++v) {
            float* const to = product.to + row * product.to_row + v * lanes;
            store(to, adds ? load(to) + sums[row * vectors + v] : sums[row * vectors + v]);
        }
    }
}

/// Multiplies up to most_rows rows with one or two vectors.
template <bool adds, int rows = most_rows>
FINCH_INLINE void multiply_rows(std::int64_t count, std::int64_t vectors, const Product& product) {
    if constexpr (rows > 1) {
        if (count < rows) {
            multiply_rows<adds, rows - 1>(count, vectors, product);
            return;
        }
    }
    vectors == 2 ? multiply<rows, 2, adds>(product) : multiply<rows, 1, adds>(product);
}

/// Calls work(first, count) for even parts of at most `most` of `all` items.
template <class Work>
FINCH_INLINE void for_parts(std::int64_t items, std::int64_t most, Work work) {
    const std::int64_t parts = (items + most - 1) / most;
    for (std::int64_t part = 0; part < parts; ++part) {
        const std::int64_t first = items * part / parts;
        work(first, items * (part + 1) / parts - first);
    }
}

/// The five one-dimensional transforms of Winograd's minimal filtering F(m, 3) (Lavin and Gray, "Fast Algorithms for
/// Convolutional Neural Networks", arXiv 1509.09308): `input` is Bᵀ, `kernel` G, `output` Aᵀ. For the gradient of the
/// kernel, `gradient` is A and `weight` is Gᵀ. The transforms of the kernel take vectors or single floats.
template <int m>
struct Minimal;

/// The points 0, 1, −1 and infinity.
template <>
struct Minimal<2> {
    FINCH_INLINE static void input(const Vector (&d)[4], Vector (&t)[4]) {
        t[0] = d[0] - d[2];
        t[1] = d[1] + d[2];
        t[2] = d[2] - d[1];
        t[3] = d[1] - d[3];
    }
    template <class Value>
    FINCH_INLINE static void kernel(const Value (&g)[3], Value (&t)[4]) {
        const Value sum = g[0] + g[2];
        t[0] = g[0];
        t[1] = 0.5F * (sum + g[1]);
        t[2] = 0.5F * (sum - g[1]);
        t[3] = g[2];
    }
    FINCH_INLINE static void output(const Vector (&t)[4], Vector (&y)[2]) {
        y[0] = t[0] + (t[1] + t[2]);
        y[1] = (t[1] - t[2]) - t[3];
    }
    FINCH_INLINE static void gradient(const Vector (&y)[2], Vector (&t)[4]) {
        t[0] = y[0];
        t[1] = y[0] + y[1];
        t[2] = y[0] - y[1];
        t[3] = -y[1];
    }
    template <class Value>
    FINCH_INLINE static void weight(const Value (&t)[4], Value (&g)[3]) {
        const Value sum = 0.5F * (t[1] + t[2]);
        g[0] = t[0] + sum;
        g[1] = 0.5F * (t[1] - t[2]);
        g[2] = sum + t[3];
    }
};

/// The points 0, ±3/4, ±3/2 and infinity. With the usual points 0, ±1, ±2 the errors are four times as large.
template <>
struct Minimal<4> {
    static constexpr float a = 0.75F, b = 1.5F, aa = a * a, bb = b * b, aabb = aa * bb;
    static constexpr float of_a = 1 / (2 * aa * (aa - bb)), of_b = 1 / (2 * bb * (bb - aa));

    FINCH_INLINE static void input(const Vector (&d)[6], Vector (&t)[6]) {
        const Vector p = d[4] - bb * d[2];
        const Vector q = a * (d[3] - bb * d[1]);
        const Vector r = d[4] - aa * d[2];
        const Vector s = b * (d[3] - aa * d[1]);
        t[0] = aabb * d[0] - (aa + bb) * d[2] + d[4];
        t[1] = p + q;
        t[2] = p - q;
        t[3] = r + s;
        t[4] = r - s;
        t[5] = aabb * d[1] - (aa + bb) * d[3] + d[5];
    }
    template <class Value>
    FINCH_INLINE static void kernel(const Value (&g)[3], Value (&t)[6]) {
        const Value p = of_a * g[0] + of_a * aa * g[2];
        const Value r = of_b * g[0] + of_b * bb * g[2];
        t[0] = (1 / aabb) * g[0];
        t[1] = p + of_a * a * g[1];
        t[2] = p - of_a * a * g[1];
        t[3] = r + of_b * b * g[1];
        t[4] = r - of_b * b * g[1];
        t[5] = g[2];
    }
    FINCH_INLINE static void output(const Vector (&t)[6], Vector (&y)[4]) {
        const Vector p = t[1] + t[2];
        const Vector q = t[1] - t[2];
        const Vector r = t[3] + t[4];
        const Vector s = t[3] - t[4];
        y[0] = t[0] + p + r;
        y[1] = a * q + b * s;
        y[2] = aa * p + bb * r;
        y[3] = aa * a * q + (bb * b * s + t[5]);
    }
    FINCH_INLINE static void gradient(const Vector (&y)[4], Vector (&t)[6]) {
        const Vector p = y[0] + aa * y[2];
        const Vector q = a * (y[1] + aa * y[3]);
        const Vector r = y[0] + bb * y[2];
        const Vector s = b * (y[1] + bb * y[3]);
        t[0] = y[0];
        t[1] = p + q;
        t[2] = p - q;
        t[3] = r + s;
        t[4] = r - s;
        t[5] = y[3];
    }
    template <class Value>
    FINCH_INLINE static void weight(const Value (&t)[6], Value (&g)[3]) {
        const Value p = of_a * (t[1] + t[2]);
        const Value r = of_b * (t[3] + t[4]);
        g[0] = (1 / aabb) * t[0] + p + r;
        g[1] = of_a * a * (t[1] - t[2]) + of_b * b * (t[3] - t[4]);
        g[2] = aa * p + bb * r + t[5];
    }
};

/// Applies a one-dimensional transform to the columns and then to the rows of a tile.
template <auto step, class Value, int from_side, int to_side>
FINCH_INLINE void both_ways(const Value (&from)[from_side][from_side], Value (&to)[to_side][to_side]) {
    Value half[to_side][from_side];
    FINCH_UNROLL for (int s = 0; s < from_side; ++s) {
        Value column[from_side];
        Value result[to_side];
        FINCH_UNROLL for (int r = 0; r < from_side; ++r) {
            column[r] = from[r][s];
        }
        step(column, result);
        FINCH_UNROLL for (int r = 0; r < to_side; ++r) {
            half[r][s] = result[r];
        }
    }
    FINCH_UNROLL for (int r = 0; r < to_side; ++r) {
        step(half[r], to[r]);
    }
}

}  // namespace finch::backend::cpu::FINCH_ISA
