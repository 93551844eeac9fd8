#include "finch/backend/device.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/comm/all_reduce.hpp"

#include "deadline.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace finch::comm {
namespace {

/// Copies each bucket device → host, sums it with MPI, and copies it host → device. MPI's collectives start in the
/// order of the buckets on every rank, even if a later copy arrives first.
class StagedAllReduce : public AllReduce {
public:
    StagedAllReduce(const Group& group, backend::Device& device, double timeout_seconds)
        : group_(group),
          device_(device),
          timeout_seconds_(timeout_seconds),
          mpi_(make_mpi_all_reduce(group, timeout_seconds)) {}

    /// Leaks the memory of sums that have not ended, because MPI may still write to it.
    ~StagedAllReduce() override {
        for (std::size_t number = 0; number < begun_; ++number) {
            static_cast<void>(transfers_[number].way.release());
        }
        if (sums_statistics_) {
            static_cast<void>(statistics_.way.release());
        }
    }
    StagedAllReduce(const StagedAllReduce&) = delete;
    StagedAllReduce& operator=(const StagedAllReduce&) = delete;

    [[nodiscard]] backend::CaptureAs capture_as() const override { return mpi_->capture_as(); }

    void start(std::span<float> bucket) override {
        if (group_.size() == 1) {
            return;
        }
        const std::size_t number = buckets_.size();
        if (number == transfers_.size() || bucket.size() > transfers_[number].floats) {
            transfers_.resize(std::max(transfers_.size(), number + 1));
            transfers_[number] = {device_.make_transfer(bucket.size()), bucket.size()};
        }
        transfers_[number].way->fetch(bucket);
        buckets_.push_back(bucket);
    }

    void progress() override {
        while (begun_ < buckets_.size() && transfers_[begun_].way->has_arrived()) {
            mpi_->start(transfers_[begun_].way->host());
            ++begun_;
        }
        mpi_->progress();
    }

    void wait() override {
        Deadline deadline(timeout_seconds_);
        for (progress(); begun_ < buckets_.size(); progress()) {
            if (deadline.is_over()) {
                throw Error(
                    fmt::format("rank {} of {} of this worker: the device did not give the gradients' bucket {} "
                                "of {} within {} s (workers.timeout_seconds)",
                                group_.rank(), group_.size(), begun_ + 1, buckets_.size(), timeout_seconds_));
            }
        }
        mpi_->wait();
        for (std::size_t number = 0; number < buckets_.size(); ++number) {
            transfers_[number].way->put_back(buckets_[number]);
        }
        buckets_.clear();
        begun_ = 0;
    }

    void sum(std::span<double> values) override {
        if (group_.size() == 1) {
            return;
        }
        // A transfer holds floats: each double uses the space of two floats.
        const std::span<float> raw(reinterpret_cast<float*>(values.data()), 2 * values.size());
        if (!statistics_.way || raw.size() > statistics_.floats) {
            statistics_ = {device_.make_transfer(raw.size()), raw.size()};
        }
        statistics_.way->fetch(raw);
        Deadline deadline(timeout_seconds_);
        while (!statistics_.way->has_arrived() || begun_ < buckets_.size()) {
            progress();  // buckets that were started earlier are summed first
            if (deadline.is_over()) {
                throw Error(
                    fmt::format("rank {} of {} of this worker: the device did not give {} statistics within {} s "
                                "(workers.timeout_seconds)",
                                group_.rank(), group_.size(), values.size(), timeout_seconds_));
            }
        }
        sums_statistics_ = true;
        mpi_->sum({reinterpret_cast<double*>(statistics_.way->host().data()), values.size()});
        sums_statistics_ = false;
        statistics_.way->put_back(raw);
    }

    /// Does nothing: after wait(), the device needs no peer.
    void synchronize() override {}

private:
    struct Lane {
        std::unique_ptr<backend::Transfer> way;
        std::size_t floats = 0;
    };

    const Group& group_;
    backend::Device& device_;
    double timeout_seconds_;
    std::unique_ptr<AllReduce> mpi_;
    std::vector<Lane> transfers_;  ///< by number of the bucket within a step
    Lane statistics_;
    std::vector<std::span<float>> buckets_;  ///< started and not yet waited for
    std::size_t begun_ = 0;                  ///< of these, buckets that MPI is summing
    bool sums_statistics_ = false;           ///< MPI is summing statistics, or the sum failed
};

}  // namespace

std::unique_ptr<AllReduce> make_staged_all_reduce(const Group& group, backend::Device& device, double timeout_seconds) {
    return std::make_unique<StagedAllReduce>(group, device, timeout_seconds);
}

}  // namespace finch::comm
