#include "step_sums.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <span>

namespace finch::train {

StepSums::StepSums(backend::Device& device, comm::AllReduce& all_reduce, nn::Model& model, std::int64_t passes,
                   backend::LapTimer* timer)
    : device_(device), all_reduce_(all_reduce), model_(model), timer_(timer), buckets_(model.plan()) {
    const std::vector<nn::Node>& nodes = model.plan().nodes;
    std::size_t most = 0;
    const auto add_statistics = [&](std::size_t count) {
        if (count > 0 && !all_reduce.is_of_one_rank()) {
            planned_.push_back({.statistics = count});
            most = std::max(most, count);
        }
    };
    for (std::int64_t pass = 1; pass <= passes; ++pass) {
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            add_statistics(model.forward_sums(i));
        }
        for (std::size_t i = nodes.size(); i-- > 0;) {
            add_statistics(model.backward_sums(i));
            const std::int64_t end = pass == passes ? nodes[i].parameters_offset + nodes[i].parameters : 0;
            for (const Bucket& bucket : buckets_.complete_until(end)) {
                planned_.push_back({.bucket = bucket});
            }
        }
    }
    if (most > 0) {
        zeros_ = device.allocate(2 * most);
    }
    begin();
}

void StepSums::begin() noexcept {
    static_cast<void>(buckets_.rest());
    done_ = 0;
}

void StepSums::sum(double* values, std::size_t count) {
    const backend::LapScope scope(timer_, backend::Activity::all_reduce);
    ++done_;
    try {
        all_reduce_.sum({values, count});
    } catch (const std::exception&) {
        failure_ = std::current_exception();
        throw;
    }
}

void StepSums::grads_ready(std::int64_t end) {
    // If the all-reduce is enqueued on the device, this call takes no time that would have to be measured.
    const backend::LapScope scope(all_reduce_.is_graph_capturable() ? nullptr : timer_, backend::Activity::all_reduce);
    for (const Bucket& bucket : buckets_.complete_until(end)) {
        ++done_;
        start(bucket);
    }
    all_reduce_.progress();
}

void StepSums::finish(bool failed) {
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    if (!failed && done_ != planned_.size()) {
        throw Error(fmt::format("a training step did {} of {} sums over the ranks", done_, planned_.size()));
    }
    while (done_ < planned_.size()) {
        const Planned& left = planned_[done_++];
        if (left.statistics > 0) {
            device_.upload(std::vector<float>(2 * left.statistics), zeros_.data());
            all_reduce_.sum({reinterpret_cast<double*>(zeros_.data()), left.statistics});
        } else {
            const std::vector<float> zeros(static_cast<std::size_t>(left.bucket.end - left.bucket.begin));
            device_.upload(zeros, model_.grads().data() + left.bucket.begin);
            start(left.bucket);
        }
    }
    all_reduce_.wait();
}

void StepSums::start(const Bucket& bucket) {
    all_reduce_.start(model_.grads().subspan(static_cast<std::size_t>(bucket.begin),
                                             static_cast<std::size_t>(bucket.end - bucket.begin)));
}

}  // namespace finch::train
