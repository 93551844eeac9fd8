// Replaces nccl_all_reduce.cpp if the program is built without NCCL.
#include "finch/base/error.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/comm/version.hpp"

namespace finch::comm {

bool has_nccl() noexcept {
    return false;
}

std::unique_ptr<AllReduce> make_nccl_all_reduce(const Group&, backend::Device&, double) {
    throw ConfigError("workers.communicator: nccl: this program was built without NCCL; auto and staged serve");
}

NcclVersion nccl_version() {
    return {};
}

}  // namespace finch::comm
