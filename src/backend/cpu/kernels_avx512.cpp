#define FINCH_ISA avx512
#define FINCH_LANES 16
#include "kernels.inc"
