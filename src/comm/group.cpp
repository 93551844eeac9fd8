#include "finch/comm/group.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/cluster/environment.hpp"

#include "deadline.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <thread>

namespace finch::comm {
namespace {

constexpr int waiting_tag = 31415;      // to every rank of the worker: I am waiting too
constexpr double seconds_to_agree = 2;  // ranks that wait for the same collective give up at nearly the same time

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
    names_ = gather_all(communicator, fmt::format("rank {} on {}", rank_of(world), cluster::host_name()));
}

std::string Group::who_is_missing() const {
    std::vector<char> is_here(static_cast<std::size_t>(size_), 0);
    is_here[static_cast<std::size_t>(rank_)] = 1;
    for (int to = 0; to < size_; ++to) {
        MPI_Request request = MPI_REQUEST_NULL;
        FINCH_MPI(MPI_Isend(nullptr, 0, MPI_BYTE, to, waiting_tag, get(), &request));
        FINCH_MPI(MPI_Request_free(&request));
    }
    for (Deadline deadline(seconds_to_agree); !deadline.is_over();) {
        int there = 0;
        MPI_Status status;
        FINCH_MPI(MPI_Iprobe(MPI_ANY_SOURCE, waiting_tag, get(), &there, &status));
        if (there != 0) {
            FINCH_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, waiting_tag, get(), MPI_STATUS_IGNORE));
            is_here[static_cast<std::size_t>(status.MPI_SOURCE)] = 1;
        }
    }
    std::vector<std::string> missing;
    for (std::size_t rank = 0; rank < is_here.size(); ++rank) {
        if (is_here[rank] == 0) {
            missing.push_back(names_[rank]);
        }
    }
    return missing.empty() ? "no rank (the network may be slow)" : fmt::format("{}", fmt::join(missing, ", "));
}

/// Waits with a deadline, so that a stopped or hanging peer does not block the job until its time limit.
void Group::finish(MPI_Request& request, const char* what, double seconds) const {
    const double limit = std::max(seconds, timeout_seconds_);
    Deadline deadline(limit);
    int done = 0;
    while (done == 0) {
        FINCH_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (done == 0 && deadline.is_over()) {
            (void)buffers_.release();
            buffers_ = std::make_unique<Buffers>();
            throw Error(
                fmt::format("{}: {} did not end within {} s (workers.timeout_seconds); of this worker's ranks there "
                            "does not answer: {}",
                            names_[static_cast<std::size_t>(rank_)], what, limit, who_is_missing()));
        }
        if (done == 0 && sleeps_) {
            std::this_thread::sleep_for(std::chrono::microseconds(500));
        }
    }
}

void Group::broadcast(Bytes& bytes, double seconds, std::size_t most) const {
    if (size_ == 1) {
        return;
    }
    if (is_leader()) {
        buffers_->packet.size = bytes.size();
        std::copy_n(bytes.begin(), std::min(bytes.size(), buffers_->packet.bytes.size()),
                    buffers_->packet.bytes.begin());
    }
    MPI_Request request = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Ibcast(&buffers_->packet, sizeof buffers_->packet, MPI_BYTE, 0, get(), &request));
    finish(request, is_leader() ? "an order" : "the wait for the leader's next order", seconds);
    bytes.resize(buffers_->packet.size);
    if (buffers_->packet.size > buffers_->packet.bytes.size()) {
        for (std::span<std::byte> rest(bytes); !rest.empty();) {
            const auto part = rest.first(std::min(rest.size(), most));
            FINCH_MPI(MPI_Ibcast(part.data(), int_count(part.size()), MPI_BYTE, 0, get(), &request));
            finish(request, "a long order");
            rest = rest.subspan(part.size());
        }
    } else if (!is_leader()) {
        std::copy_n(buffers_->packet.bytes.begin(), buffers_->packet.size, bytes.begin());
    }
}

std::int64_t Group::maximum(std::int64_t value) const {
    return maximum(std::array{value, std::numeric_limits<std::int64_t>::min()})[0];
}

std::array<std::int64_t, 2> Group::maximum(std::array<std::int64_t, 2> values) const {
    buffers_->agreement = values;
    if (size_ > 1) {
        MPI_Request request = MPI_REQUEST_NULL;
        FINCH_MPI(MPI_Iallreduce(MPI_IN_PLACE, buffers_->agreement.data(), 2, MPI_INT64_T, MPI_MAX, get(), &request));
        finish(request, "an agreement");
    }
    return buffers_->agreement;
}

void Group::sum(std::span<double> values) const {
    if (size_ == 1 || values.empty()) {
        return;
    }
    // MPI_Allreduce may add in a different order on each rank. This code always adds ((rank 0 + rank 1) + rank 2) + ….
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

void Group::minimum(std::span<double> values) const {
    if (size_ > 1) {
        MPI_Request request = MPI_REQUEST_NULL;
        FINCH_MPI(MPI_Iallreduce(MPI_IN_PLACE, values.data(), int_count(values.size()), MPI_DOUBLE, MPI_MIN, get(),
                                 &request));
        finish(request, "a comparison of times");
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
