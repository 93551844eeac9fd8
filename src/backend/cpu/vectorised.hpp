#pragma once

/// A loop that is compiled for several instruction sets, of which the program's start chooses.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define FINCH_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FINCH_VECTORISED
#endif
