#define FINCH_ISA avx2
#define FINCH_LANES 8
#include "kernels.inc"
