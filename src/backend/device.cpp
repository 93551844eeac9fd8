#include "finch/backend/device.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <dnnl.hpp>
#include <utility>

namespace finch::backend {

Buffer::Buffer(float* data, std::size_t size, std::function<void(float*)> free)
    : data_(data, std::move(free)), size_(size) {}

std::unique_ptr<Transfer> Device::make_transfer(std::size_t /*floats*/) {
    throw Error("workers.communicator: staged: " + name() + " has no transfers to the host");
}

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
