#pragma once

// nvcc includes this file before all other code (finch/base/portable.hpp).
#define FINCH_PORTABLE __host__ __device__ __forceinline__
