#include "finch/comm/group.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

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

Group::Group(MPI_Comm world, int worker, int group_rank) {
    MPI_Comm communicator = MPI_COMM_NULL;
    FINCH_MPI(MPI_Comm_split(world, worker, group_rank, &communicator));
    communicator_ = own(communicator);
    rank_ = rank_of(communicator);
    size_ = size_of(communicator);
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
        FINCH_MPI(MPI_Bcast(bytes.data(), int_count(bytes.size()), MPI_BYTE, 0, get()));
    } else if (!is_leader()) {
        std::copy_n(packet.bytes.begin(), packet.size, bytes.begin());
    }
}

std::int64_t Group::maximum(std::int64_t value) const {
    if (size_ > 1) {
        FINCH_MPI(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MAX, get()));
    }
    return value;
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
        FINCH_MPI(MPI_Allreduce(MPI_IN_PLACE, values.data(), int_count(values.size()), MPI_INT64_T, MPI_SUM, get()));
    }
}

std::vector<double> Group::gather(std::span<const double> values) const {
    const int count = int_count(values.size() * static_cast<std::size_t>(size_)) / size_;
    std::vector<double> all(values.size() * static_cast<std::size_t>(size_));
    FINCH_MPI(MPI_Allgather(values.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, get()));
    return all;
}

}  // namespace finch::comm
