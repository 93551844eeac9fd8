#pragma once

/// Compiles a loop for several instruction sets. One of the versions is selected at program start.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define FINCH_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FINCH_VECTORISED
#endif
