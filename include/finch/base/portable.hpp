#pragma once

/// FINCH_PORTABLE: a small function that hosts and kernels both call. A compiler of kernels is told otherwise.
#if !defined(FINCH_PORTABLE)
#define FINCH_PORTABLE inline
#endif
