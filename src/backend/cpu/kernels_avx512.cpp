#if defined(__x86_64__)
#define FINCH_ISA avx512
#define FINCH_LANES 16
#include "kernels.inc"
#endif
