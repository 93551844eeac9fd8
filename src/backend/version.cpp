#include "finch/backend/version.hpp"

#include "finch/base/format.hpp"

#include <dnnl.hpp>

namespace finch::backend {
namespace {

const char* instructions() {
    switch (dnnl::get_effective_cpu_isa()) {
        case dnnl::cpu_isa::sse41:
            return "SSE4.1";
        case dnnl::cpu_isa::avx:
            return "AVX";
        case dnnl::cpu_isa::avx2:
        case dnnl::cpu_isa::avx2_vnni:
            return "AVX2";
        default:
            return "AVX-512 or later";
    }
}

}  // namespace

std::string onednn_version() {
    const dnnl_version_t& version = *dnnl_version();
    return fmt::format("{}.{}.{}, {}", version.major, version.minor, version.patch, instructions());
}

std::string cuda_architectures() {
    return FINCH_CUDA_ARCHITECTURES;
}

}  // namespace finch::backend
