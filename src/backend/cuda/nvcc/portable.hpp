#pragma once

// Before everything else that nvcc compiles (finch/base/portable.hpp).
#define FINCH_PORTABLE __host__ __device__ __forceinline__
