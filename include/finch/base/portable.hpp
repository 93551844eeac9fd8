#pragma once

/// FINCH_PORTABLE: a small function that hosts and kernels both call.
#if defined(__CUDACC__)
#define FINCH_PORTABLE __host__ __device__ __forceinline__
#else
#define FINCH_PORTABLE inline
#endif
