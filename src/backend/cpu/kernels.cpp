#include "kernels.hpp"

#include "library.hpp"

namespace finch::backend::cpu {

const Kernels& kernels() {
#if defined(__x86_64__)
    static const Kernels& widest = may_use(dnnl::cpu_isa::avx512_core) ? avx512::own_kernels
                                   : may_use(dnnl::cpu_isa::avx2)      ? avx2::own_kernels
                                                                       : baseline::own_kernels;
    return widest;
#else
    return baseline::own_kernels;
#endif
}

}  // namespace finch::backend::cpu
