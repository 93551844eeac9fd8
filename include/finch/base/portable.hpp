#pragma once

/// FINCH_PORTABLE marks a small function that both host code and GPU kernels call. nvcc builds define FINCH_PORTABLE
/// differently.
#if !defined(FINCH_PORTABLE)
#define FINCH_PORTABLE inline
#endif
