#include "finch/comm/all_reduce.hpp"

namespace finch::comm {

std::unique_ptr<AllReduce> make_all_reduce(cluster::AllReduceKind kind, const Group& group, backend::Device& device,
                                           double timeout_seconds) {
    switch (kind) {
        case cluster::AllReduceKind::nccl:
            return make_nccl_all_reduce(group, device, timeout_seconds);
        case cluster::AllReduceKind::staged:
            return make_staged_all_reduce(group, device, timeout_seconds);
        case cluster::AllReduceKind::none:
        case cluster::AllReduceKind::automatic:
        case cluster::AllReduceKind::mpi:
            break;
    }
    return make_mpi_all_reduce(group, timeout_seconds);
}

}  // namespace finch::comm
