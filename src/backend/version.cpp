#include "finch/backend/version.hpp"

#include "finch/base/format.hpp"

#include <dnnl.hpp>

namespace finch::backend {
namespace {

const char* instructions() {
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    if (isa == dnnl::cpu_isa::sse41) {
        return "SSE4.1";
    }
    if (isa == dnnl::cpu_isa::avx) {
        return "AVX";
    }
    return isa == dnnl::cpu_isa::avx2 || isa == dnnl::cpu_isa::avx2_vnni ? "AVX2" : "AVX-512 or later";
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
