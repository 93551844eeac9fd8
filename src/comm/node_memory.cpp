#include "finch/comm/node_memory.hpp"

#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/parsed.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/cluster/layout.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <sys/statvfs.h>
#include <unistd.h>

namespace finch::comm {

void WindowTraits::destroy(type window) noexcept {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0 || std::uncaught_exceptions() > 0) {
        return;
    }
    if (MPI_Win_free(&window) != MPI_SUCCESS) {
        spdlog::warn("MPI_Win_free failed");
    }
}

Communicator split_by_node(MPI_Comm world) {
    MPI_Comm node = MPI_COMM_NULL;
    FINCH_MPI(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank_of(world), MPI_INFO_NULL, &node));
    return own(node);
}

std::vector<std::string> names_of_nodes(MPI_Comm world) {
    const Communicator node = split_by_node(world);
    const std::string first = broadcast(node.get(), std::to_string(rank_of(world)));
    std::vector<int> first_rank_on_node;
    for (const std::string& rank : gather_all(world, first)) {
        first_rank_on_node.push_back(parsed<int>(rank).value_or(0));
    }
    // Slurm's names first: srun and mpirun know the nodes of a job by these names. A host name may have a domain.
    const auto of_slurm = cluster::Environment::of_this_process().text("SLURMD_NODENAME");
    std::vector<std::string> names =
        cluster::names_of_nodes(gather_all(world, of_slurm.value_or("")), first_rank_on_node);
    const bool are_known = std::none_of(names.begin(), names.end(), [](const std::string& name) {
        return name.empty() || cluster::has_shared_host_name(name);
    });
    return are_known ? names : cluster::names_of_nodes(gather_all(world, cluster::host_name()), first_rank_on_node);
}

// Open MPI keeps a shared window in a file. If the file system is full, access to the window raises SIGBUS. Other MPI
// libraries use /dev/shm too.
std::uint64_t free_shared_bytes() {
    const cluster::Environment environment = cluster::Environment::of_this_process();
    std::string folder = environment.text("OMPI_MCA_osc_sm_backing_directory").value_or("/dev/shm");
    if (::access(folder.c_str(), W_OK) != 0) {
        folder = environment.text("TMPDIR").value_or("/tmp");  // Open MPI's session directory is there
    }
    struct statvfs found {};
    if (::statvfs(folder.c_str(), &found) != 0) {
        return std::numeric_limits<std::uint64_t>::max();
    }
    return std::uint64_t{found.f_bavail} * found.f_frsize;
}

NodeMemory::NodeMemory(MPI_Comm node, std::size_t bytes, std::uint64_t free_bytes) : node_(node) {
    struct Wanted {
        std::uint64_t bytes;
        std::uint64_t free;
    } wanted{bytes, free_bytes};
    broadcast_bytes(node, 0, std::as_writable_bytes(std::span(&wanted, 1)));
    const std::uint64_t least = wanted.bytes + wanted.bytes / 10 + (1 << 20);  // MPI needs some memory itself
    if (size_of(node) > 1) {
        if (wanted.free < least) {
            problem_ = fmt::format("{} MB of shared memory are free, {} MB are needed", wanted.free >> 20, least >> 20);
        } else if (!share(wanted.bytes)) {
            problem_ = "MPI has no shared window to give";
        }
    }
    if (!window_) {
        own_.resize(wanted.bytes);
        bytes_ = own_;
    }
}

bool NodeMemory::share(std::size_t bytes) {
    MPI_Win window = MPI_WIN_NULL;
    void* mine = nullptr;
    const auto size = static_cast<MPI_Aint>(rank_of(node_) == 0 ? bytes : 0);
    int got = MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, node_, &mine, &window) == MPI_SUCCESS ? 1 : 0;
    FINCH_MPI(MPI_Allreduce(MPI_IN_PLACE, &got, 1, MPI_INT, MPI_MIN, node_));
    if (got == 0) {
        return false;  // a window that only some ranks have cannot be freed: MPI_Win_free is collective
    }
    window_.reset(window);
    FINCH_MPI(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    MPI_Aint whole = 0;
    int unit = 0;
    void* begin = nullptr;
    FINCH_MPI(MPI_Win_shared_query(window, 0, &whole, &unit, &begin));
    bytes_ = {static_cast<std::byte*>(begin), bytes};
    return true;
}

void NodeMemory::publish() const {
    if (!window_) {
        broadcast_bytes(node_, 0, bytes_);
        return;
    }
    // MPI 4.0, 12.4: a fence separates the stores of rank 0 from the loads of other ranks.
    FINCH_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window_.get()));
}

}  // namespace finch::comm
