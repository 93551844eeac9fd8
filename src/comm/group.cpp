#include "finch/comm/group.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "patience.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace finch::comm {
namespace {

/// What one MPI_Bcast carries: an Order nearly always fits, and a second call would double its time.
struct Packet {
    std::uint64_t size = 0;
    std::array<std::byte, 248> bytes;
};

int int_count(std::size_t count) {
    if (count > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw Error(fmt::format("{} values are too many for one collective", count));
    }
    return static_cast<int>(count);
}

}  // namespace

Group::Group(MPI_Comm world, int worker, int group_rank, double timeout_seconds) : timeout_seconds_(timeout_seconds) {
    MPI_Comm communicator = MPI_COMM_NULL;
    FINCH_MPI(MPI_Comm_split(world, worker, group_rank, &communicator));
    communicator_ = own(communicator);
    rank_ = rank_of(communicator);
    size_ = size_of(communicator);
}

/// Waits with a deadline: a peer that was stopped or hangs must not hold the whole job until its time limit.
void Group::finish(MPI_Request& request, const char* what) const {
    Patience patience(timeout_seconds_);
    int done = 0;
    while (done == 0) {
        FINCH_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (done == 0 && patience.is_over()) {
            throw Error(
                fmt::format("rank {} of {} of this worker: {} did not end within {} s (workers.timeout_seconds): "
                            "another rank does not come",
                            rank_, size_, what, timeout_seconds_));
        }
    }
}

void Group::broadcast(Bytes& bytes) const {
    if (size_ == 1) {
        return;
    }
    Packet packet;
    if (is_leader()) {
        packet.size = bytes.size();
        std::copy_n(bytes.begin(), std::min(bytes.size(), packet.bytes.size()), packet.bytes.begin());
    }
    FINCH_MPI(MPI_Bcast(&packet, sizeof packet, MPI_BYTE, 0, get()));
    bytes.resize(packet.size);
    if (packet.size > packet.bytes.size()) {
        broadcast_bytes(get(), 0, bytes);
    } else if (!is_leader()) {
        std::copy_n(packet.bytes.begin(), packet.size, bytes.begin());
    }
}

std::int64_t Group::maximum(std::int64_t value) const {
    agreement_ = value;
    if (size_ > 1) {
        MPI_Request request = MPI_REQUEST_NULL;
        FINCH_MPI(MPI_Iallreduce(MPI_IN_PLACE, &agreement_, 1, MPI_INT64_T, MPI_MAX, get(), &request));
        finish(request, "an agreement");
    }
    return agreement_;
}

void Group::sum(std::span<double> values) const {
    if (size_ == 1 || values.empty()) {
        return;
    }
    // MPI_Allreduce may add in another order on each rank; this is always ((rank 0 + rank 1) + rank 2) + ….
    const std::vector<double> all = gather(values);
    std::copy_n(all.begin(), values.size(), values.begin());
    for (std::size_t at = values.size(); at < all.size(); ++at) {
        values[at % values.size()] += all[at];
    }
}

void Group::sum(std::span<std::int64_t> values) const {
    if (size_ > 1) {
        MPI_Request request = MPI_REQUEST_NULL;
        FINCH_MPI(MPI_Iallreduce(MPI_IN_PLACE, values.data(), int_count(values.size()), MPI_INT64_T, MPI_SUM, get(),
                                 &request));
        finish(request, "a sum of counts");
    }
}

std::vector<double> Group::gather(std::span<const double> values) const {
    const int count = int_count(values.size() * static_cast<std::size_t>(size_)) / size_;
    std::vector<double> all(values.size() * static_cast<std::size_t>(size_));
    MPI_Request request = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Iallgather(values.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, get(), &request));
    finish(request, "a sum of losses");
    return all;
}

}  // namespace finch::comm
