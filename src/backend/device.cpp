#include "finch/backend/device.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "cpu/library.hpp"

#include <utility>
#include <variant>

namespace finch::backend {

Buffer::Buffer(float* data, std::size_t size, std::function<void(float*)> free)
    : data_(data, std::move(free)), size_(size) {}

bool Device::supports_types(const OperationShape& shape) const {
    return std::visit(
        [](const auto& known) {
            if constexpr (requires { known.x_type; }) {
                return known.x_type == TensorType::float32 && known.y_type == TensorType::float32;
            } else {
                return true;
            }
        },
        shape);
}

void Device::run_replicas(std::int64_t replicas, const std::function<void(std::int64_t replica)>& work) {
    for (std::int64_t replica = 0; replica < replicas; ++replica) {
        work(replica);
    }
}

std::unique_ptr<Device> Device::replica(std::int64_t /*replica*/) {
    throw Error(name() + " has no replicas");
}

std::unique_ptr<Transfer> Device::make_transfer(std::size_t /*floats*/) {
    throw Error("workers.communicator: staged: " + name() + " has no transfers to the host");
}

namespace {

const char* instructions() {
    if (cpu::may_use(dnnl::cpu_isa::avx512_core)) {
        return "AVX-512 or later";
    }
    if (cpu::may_use(dnnl::cpu_isa::avx2)) {
        return "AVX2";
    }
    return cpu::may_use(dnnl::cpu_isa::avx) ? "AVX" : "SSE4.1";
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
