// Stands in for nccl_version.cpp where the program is built without NCCL.
#include "finch/comm/version.hpp"

namespace finch::comm {

NcclVersion nccl_version() {
    return {};
}

}  // namespace finch::comm
