#define FINCH_ISA baseline
#define FINCH_LANES 4
#include "kernels.inc"
