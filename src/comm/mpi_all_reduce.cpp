#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/comm/all_reduce.hpp"

#include "deadline.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

namespace finch::comm {
namespace {

class MpiAllReduce : public AllReduce {
public:
    MpiAllReduce(const Group& group, double timeout_seconds) : group_(group), timeout_seconds_(timeout_seconds) {}

    /// True for a single rank, which has nothing to sum.
    [[nodiscard]] backend::CaptureAs capture_as() const override {
        return group_.size() == 1 ? backend::CaptureAs::graph : backend::CaptureAs::calls;
    }

    void start(std::span<float> bucket) override {
        if (group_.size() == 1) {
            return;
        }
        if (bucket.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
            throw Error(fmt::format("a bucket of {} values is too large for one all-reduce", bucket.size()));
        }
        MPI_Request request = MPI_REQUEST_NULL;
        FINCH_MPI(MPI_Iallreduce(MPI_IN_PLACE, bucket.data(), static_cast<int>(bucket.size()), MPI_FLOAT, MPI_SUM,
                                 group_.get(), &request));
        requests_.push_back(request);
        sizes_.push_back(bucket.size());
    }

    void progress() override {
        if (!requests_.empty()) {
            (void)all_summed();
        }
    }

    void wait() override {
        if (requests_.empty()) {
            return;
        }
        Deadline deadline(timeout_seconds_);
        while (!all_summed()) {
            if (deadline.is_over()) {
                throw_timeout();
            }
        }
        requests_.clear();
        sizes_.clear();
    }

    void sum(std::span<double> values) override {
        if (group_.size() == 1) {
            return;
        }
        // The sum has its own buffer: if a peer does not arrive, MPI may write to the buffer after the caller's memory
        // is freed.
        auto sums = std::make_unique<double[]>(values.size());
        std::copy(values.begin(), values.end(), sums.get());
        MPI_Request request = MPI_REQUEST_NULL;
        FINCH_MPI(MPI_Iallreduce(MPI_IN_PLACE, sums.get(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM,
                                 group_.get(), &request));
        Deadline deadline(timeout_seconds_);
        for (int done = 0; done == 0;) {
            FINCH_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            progress();
            if (done == 0 && deadline.is_over()) {
                static_cast<void>(sums.release());
                throw Error(fmt::format(
                    "rank {} of {} of this worker: {} statistics were not summed within {} s "
                    "(workers.timeout_seconds); "
                    "of this worker's ranks there does not answer: {}",
                    group_.rank(), group_.size(), values.size(), timeout_seconds_, group_.who_is_missing()));
            }
        }
        std::copy_n(sums.get(), values.size(), values.begin());
    }

    void synchronize() override {}

private:
    [[nodiscard]] bool all_summed() {
        int done = 0;
        FINCH_MPI(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE));
        return done != 0;
    }

    [[noreturn]] void throw_timeout() {
        std::size_t bucket = 0;
        for (int done = 1; bucket + 1 < requests_.size(); ++bucket) {
            FINCH_MPI(MPI_Request_get_status(requests_[bucket], &done, MPI_STATUS_IGNORE));
            if (done == 0) {
                break;
            }
        }
        throw Error(
            fmt::format("rank {} of {} of this worker: the gradients' bucket {} of {} ({} values) was not summed "
                        "within {} s (workers.timeout_seconds); of this worker's ranks there does not answer: {}",
                        group_.rank(), group_.size(), bucket + 1, requests_.size(), sizes_[bucket], timeout_seconds_,
                        group_.who_is_missing()));
    }

    const Group& group_;
    double timeout_seconds_;
    std::vector<MPI_Request> requests_;
    std::vector<std::size_t> sizes_;  ///< values in each bucket
};

}  // namespace

std::unique_ptr<AllReduce> make_mpi_all_reduce(const Group& group, double timeout_seconds) {
    return std::make_unique<MpiAllReduce>(group, timeout_seconds);
}

}  // namespace finch::comm
