#include "gang.hpp"

#include "finch/base/log.hpp"

#include "captured_step.hpp"
#include "steps.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

namespace finch::backend::cuda {
namespace {

bool waits(const CudaCapturedStep* member) {
    return member->waits();
}

}  // namespace

Gang::Gang(std::shared_ptr<Shared> shared)
    : stream_(std::move(shared)), steps_(stream_.allocate(sizeof(GangSteps))), done_(make_event()) {}

bool Gang::suits(const CudaCapturedStep& step) const {
    const auto& own = members_.front()->launches();
    const auto& other = step.launches();
    return members_.size() < most_members &&
           std::equal(own.begin(), own.end(), other.begin(), other.end(),
                      [](const RecordedLaunch& a, const RecordedLaunch& b) { return a.suits(b); });
}

/// The present graphs may be running. CUDA frees them when they are done.
void Gang::add(CudaCapturedStep& step) {
    members_.push_back(&step);
    graphs_ = {};
    can_capture_ = true;
}

void Gang::remove(const CudaCapturedStep& step) {
    std::erase(members_, &step);
    graphs_ = {};
    can_capture_ = true;
}

void Gang::launch_if_all_wait() {
    if (std::all_of(members_.begin(), members_.end(), waits)) {
        launch();
    }
}

void Gang::launch() {
    try {
        const std::int64_t waiting = std::count_if(members_.begin(), members_.end(), waits);
        if (waiting > 1 && capture_if_needed()) {
            launch_together();
        } else if (waiting > 0) {
            launch_alone();
        }
    } catch (const std::exception&) {
        // Part of the gang's steps may be running, and the members' streams do not wait for the gang's stream.
        log_failure(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
        for (CudaCapturedStep* member : members_) {
            if (waits(member)) {
                static_cast<void>(member->take_waiting());
                member->fail(std::current_exception());
            }
        }
    }
}

void Gang::launch_alone() {
    for (CudaCapturedStep* member : members_) {
        if (waits(member)) {
            const std::int64_t times = member->take_waiting();
            try {
                member->begin();
                member->run_alone(times);
            } catch (const std::exception&) {
                member->fail(std::current_exception());
            }
        }
    }
}

void Gang::launch_together() {
    std::array<std::int32_t, most_members> left{};
    std::int64_t most = 0;
    const cudaStream_t stream = stream_.get();
    for (std::size_t place = 0; place < members_.size(); ++place) {
        CudaCapturedStep* const member = members_[place];
        if (waits(member)) {
            left[place] = static_cast<std::int32_t>(member->waiting());
            most = std::max(most, member->waiting());
            FINCH_CUDA(cudaStreamWaitEvent(stream, member->begin(), 0));
        }
    }
    launch_set_gang_steps(stream, static_cast<GangSteps*>(steps_.get()), left);
    graphs_.launch(stream, most, [this] { enqueue_step(); });
    FINCH_CUDA(cudaEventRecord(done_.get(), stream));
    for (CudaCapturedStep* member : members_) {
        if (waits(member)) {
            member->end(done_.get(), static_cast<double>(member->waiting()) / static_cast<double>(most));
            static_cast<void>(member->take_waiting());
        }
    }
}

bool Gang::capture_if_needed() {
    if (!graphs_ && can_capture_) {
        try {
            // Launches each kernel once, with no step for any member: CUDA may load a kernel at its first launch, and a
            // capture may forbid loading.
            launch_set_gang_steps(stream_.get(), static_cast<GangSteps*>(steps_.get()), {});
            enqueue_step();
            graphs_.capture(stream_.get(), [this] { enqueue_step(); });
            spdlog::debug("{} individuals of one shape run as a gang", members_.size());
        } catch (const std::exception& error) {
            can_capture_ = false;
            spdlog::warn("a gang of {} on {} has no graph, so its members run separately: {}", members_.size(),
                         stream_.facts().name, error.what());
        }
    }
    return static_cast<bool>(graphs_);
}

/// Enqueues one step of all members.
void Gang::enqueue_step() {
    std::vector<const RecordedLaunch*> launches(members_.size());
    for (std::size_t i = 0; i < members_.front()->launches().size(); ++i) {
        std::transform(members_.begin(), members_.end(), launches.begin(),
                       [i](const auto* member) { return &member->launches()[i]; });
        FINCH_CUDA(launches.front()->enqueue(stream_.get(), launches.front()->grid,
                                             static_cast<GangSteps*>(steps_.get()), launches));
    }
}

Gang& Gangs::join(CudaCapturedStep& step) {
    const auto found = std::find_if(gangs_.begin(), gangs_.end(), [&](const auto& gang) { return gang->suits(step); });
    if (found != gangs_.end()) {
        (*found)->add(step);
        return **found;
    }
    auto gang = std::make_unique<Gang>(step.stream().shared());
    gang->add(step);
    return *gangs_.emplace_back(std::move(gang));
}

void Gangs::leave(const CudaCapturedStep& step, Gang& gang) {
    gang.remove(step);
    if (gang.is_empty()) {
        std::erase_if(gangs_, [&](const auto& each) { return each.get() == &gang; });
    }
}

void Gangs::launch_waiting() {
    for (const auto& gang : gangs_) {
        gang->launch();
    }
}

}  // namespace finch::backend::cuda
