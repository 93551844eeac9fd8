#include "finch/comm/version.hpp"

#include <nccl.h>

namespace finch::comm {

NcclVersion nccl_version() {
    NcclVersion version{.built = NCCL_VERSION_CODE};
    static_cast<void>(ncclGetVersion(&version.loaded));
    return version;
}

}  // namespace finch::comm
