#pragma once

#include "kernels.hpp"
#include "vectors.hpp"

namespace finch::backend::cpu::FINCH_ISA {

/// Copies samples between NHWC and planes (PlanesGeometry), with 4 × 4 transpositions of pixels and channels.
struct PlanesCopy {
    using Four = float __attribute__((vector_size(16), aligned(4), may_alias));

    /// Transposes 4 pixels of 4 channels.
    FINCH_INLINE static void transpose(Four (&v)[4]) {
        const Four a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
        const Four b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
        const Four c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
        const Four d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
        v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
        v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
        v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
        v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
    }
    template <class Pixels>
    FINCH_INLINE static Pixels& at(float* place) {
        return *reinterpret_cast<Pixels*>(place);
    }
    template <class Pixels>
    FINCH_INLINE static Pixels at(const float* place) {
        return *reinterpret_cast<const Pixels*>(place);
    }
    /// Four channels of each pixel, `step` floats from one pixel to the next.
    FINCH_INLINE static void load_pixels(const float* nhwc, std::int64_t step, Four (&v)[4]) {
        FINCH_UNROLL for (int k = 0; k < 4; ++k) {
            v[k] = at<Four>(nhwc + k * step);
        }
    }
    FINCH_INLINE static void store_pixels(float* nhwc, std::int64_t step, const Four (&v)[4]) {
        FINCH_UNROLL for (int k = 0; k < 4; ++k) {
            at<Four>(nhwc + k * step) = v[k];
        }
    }
#if FINCH_LANES >= 8
    using Eight = float __attribute__((vector_size(32), aligned(4), may_alias));
    /// Transposes twice 4 pixels of 4 channels: the halves of the vectors are pixels 0 to 3 and 4 to 7.
    FINCH_INLINE static void transpose(Eight (&v)[4]) {
        const Eight a = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13);
        const Eight b = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13);
        const Eight c = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
        const Eight d = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
        v[0] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
        v[1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
        v[2] = __builtin_shufflevector(c, d, 0, 1, 8, 9, 4, 5, 12, 13);
        v[3] = __builtin_shufflevector(c, d, 2, 3, 10, 11, 6, 7, 14, 15);
    }
    FINCH_INLINE static void load_pixels(const float* nhwc, std::int64_t step, Eight (&v)[4]) {
        FINCH_UNROLL for (int k = 0; k < 4; ++k) {
            v[k] = __builtin_shufflevector(at<Four>(nhwc + k * step), at<Four>(nhwc + (4 + k) * step), 0, 1, 2, 3, 4, 5,
                                           6, 7);
        }
    }
    FINCH_INLINE static void store_pixels(float* nhwc, std::int64_t step, const Eight (&v)[4]) {
        FINCH_UNROLL for (int k = 0; k < 4; ++k) {
            at<Four>(nhwc + k * step) = __builtin_shufflevector(v[k], v[k], 0, 1, 2, 3);
            at<Four>(nhwc + (4 + k) * step) = __builtin_shufflevector(v[k], v[k], 4, 5, 6, 7);
        }
    }
#else
    using Eight = Four;
#endif

    /// Copies `pixels` pixels of `channels` channels between NHWC (`step` floats from one pixel to the next) and planes
    /// (`plane` floats from one channel to the next), as many pixels at a time as Pixels holds.
    template <bool to_planes, class Pixels, class Nhwc, class Plane>
    FINCH_INLINE static void copy_groups(Nhwc* nhwc, std::int64_t step, std::int64_t pixels, std::int64_t channels,
                                         Plane* planes, std::int64_t plane) {
        constexpr std::int64_t width = sizeof(Pixels) / sizeof(float);
        for (std::int64_t group = 0; group < pixels; group += width) {
            const std::int64_t p = smaller(group, pixels - width);
            for (std::int64_t of_channels = 0; of_channels < channels; of_channels += 4) {
                const std::int64_t c = smaller(of_channels, channels - 4);
                Pixels v[4];
                if constexpr (to_planes) {
                    load_pixels(nhwc + p * step + c, step, v);
                    transpose(v);
                    FINCH_UNROLL for (int k = 0; k < 4; ++k) {
                        at<Pixels>(planes + (c + k) * plane + p) = v[k];
                    }
                } else {
                    FINCH_UNROLL for (int k = 0; k < 4; ++k) {
                        v[k] = at<Pixels>(planes + (c + k) * plane + p);
                    }
                    transpose(v);
                    store_pixels(nhwc + p * step + c, step, v);
                }
            }
        }
    }
    template <bool to_planes, class Nhwc, class Plane>
    FINCH_INLINE static void copy_pixels(Nhwc* nhwc, std::int64_t step, std::int64_t pixels, std::int64_t channels,
                                         Plane* planes, std::int64_t plane) {
        constexpr std::int64_t eight = sizeof(Eight) / sizeof(float);
        if (channels >= 4 && pixels >= eight) {
            copy_groups<to_planes, Eight>(nhwc, step, pixels, channels, planes, plane);
        } else if (channels >= 4 && pixels >= 4) {
            copy_groups<to_planes, Four>(nhwc, step, pixels, channels, planes, plane);
        } else {
            for (std::int64_t p = 0; p < pixels; ++p) {
                for (std::int64_t c = 0; c < channels; ++c) {
                    if constexpr (to_planes) {
                        planes[c * plane + p] = nhwc[p * step + c];
                    } else {
                        nhwc[p * step + c] = planes[c * plane + p];
                    }
                }
            }
        }
    }
    template <bool to_planes, class Nhwc, class Plane>
    FINCH_INLINE static void copy(const PlanesGeometry& geometry, std::int64_t padding, std::int64_t height,
                                  std::int64_t width, std::int64_t channels, Nhwc* nhwc, Plane* planes) {
        for (std::int64_t i = 0; i < height; ++i) {
            for (std::int64_t first = 0; first < 2 && first < width; ++first) {
                const std::int64_t offset = ((i + padding) % 2 * 2 + (first + padding) % 2) * geometry.plane +
                                            (i + padding) / 2 * geometry.pitch + (first + padding) / 2;
                copy_pixels<to_planes>(nhwc + (i * width + first) * channels, 2 * channels, (width - first + 1) / 2,
                                       channels, planes + offset, 4 * geometry.plane);
            }
        }
    }

    static void fill(const PlanesGeometry& at, std::int64_t padding, std::int64_t height, std::int64_t width,
                     std::int64_t channels, const float* nhwc, float* planes) {
        __builtin_memset(planes, 0, static_cast<unsigned long>(channels * 4 * at.plane) * sizeof(float));
        copy<true>(at, padding, height, width, channels, nhwc, planes);
    }
    static void read(const PlanesGeometry& at, std::int64_t height, std::int64_t width, std::int64_t channels,
                     const float* planes, float* nhwc) {
        copy<false>(at, 1, height, width, channels, nhwc, planes);
    }
};

}  // namespace finch::backend::cpu::FINCH_ISA
