#include "gang.hpp"

#include "finch/base/log.hpp"

#include "captured_step.hpp"
#include "steps.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <utility>

namespace finch::backend::cuda {

Gang::Gang(std::shared_ptr<Shared> shared)
    : stream_(std::move(shared)), steps_(stream_.allocate(sizeof(GangSteps))), done_(make_event()) {}
Gang::~Gang() = default;

bool Gang::suits(const CudaCapturedStep& step) const {
    const auto& own = members_.front()->launches();
    const auto& other = step.launches();
    return members_.size() < most_members &&
           std::equal(own.begin(), own.end(), other.begin(), other.end(),
                      [](const RecordedLaunch& a, const RecordedLaunch& b) { return a.suits(b); });
}

void Gang::add(CudaCapturedStep& step) {
    forget_graphs();
    members_.push_back(&step);
}

void Gang::remove(const CudaCapturedStep& step) {
    forget_graphs();
    std::erase(members_, &step);
}

void Gang::forget_graphs() {
    if (graphs_) {
        log_failure(cudaEventSynchronize(done_.get()), "cudaEventSynchronize");
    }
    graphs_ = {};
    can_run_ = true;
}

void Gang::launch_if_all_wait() {
    if (std::all_of(members_.begin(), members_.end(), [](const auto* member) { return member->waiting() > 0; })) {
        launch();
    }
}

void Gang::launch() {
    std::vector<CudaCapturedStep*> waiting;
    std::copy_if(members_.begin(), members_.end(), std::back_inserter(waiting),
                 [](const auto* member) { return member->waiting() > 0; });
    try {
        if (!waiting.empty()) {
            launch(waiting);
        }
    } catch (const std::exception&) {
        for (CudaCapturedStep* member : waiting) {
            static_cast<void>(member->take_waiting());
            member->fail(std::current_exception());
        }
    }
}

void Gang::launch(const std::vector<CudaCapturedStep*>& waiting) {
    std::array<std::int32_t, most_members> left{};
    std::vector<std::int64_t> times;
    for (CudaCapturedStep* member : waiting) {
        times.push_back(member->take_waiting());
        const auto place = std::find(members_.begin(), members_.end(), member) - members_.begin();
        const auto& launches = member->launches();
        const auto parts =
            std::count_if(launches.begin(), launches.end(), [](const auto& one) { return one.begins_step; });
        left[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(times.back() * parts);
    }
    const cudaStream_t stream = stream_.get();
    if (waiting.size() > 1 && can_run_ && !graphs_) {
        try {
            graphs_.capture(stream, [this] { enqueue_step(); });
            spdlog::debug("{} individuals of one shape run as a gang", members_.size());
        } catch (const std::exception& error) {
            can_run_ = false;
            spdlog::warn("{} steps on {} cannot be captured as one graph and run one by one: {}", members_.size(),
                         stream_.facts().name, error.what());
        }
    }
    if (waiting.size() == 1 || !can_run_) {
        for (std::size_t i = 0; i < waiting.size(); ++i) {
            waiting[i]->begin();
            waiting[i]->run_alone(times[i]);
        }
        return;
    }
    for (CudaCapturedStep* member : waiting) {
        FINCH_CUDA(cudaStreamWaitEvent(stream, member->begin(), 0));
    }
    const std::int64_t most = *std::max_element(times.begin(), times.end());
    launch_set_gang_steps(stream, static_cast<GangSteps*>(steps_.get()), left);
    graphs_.launch(stream, most, [this] { enqueue_step(); });
    FINCH_CUDA(cudaEventRecord(done_.get(), stream));
    for (std::size_t i = 0; i < waiting.size(); ++i) {
        waiting[i]->end(done_.get(), static_cast<double>(times[i]) / static_cast<double>(most));
    }
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

Gangs::~Gangs() = default;

Gang& Gangs::join(CudaCapturedStep& step) {
    const auto found = std::find_if(gangs_.begin(), gangs_.end(), [&](const auto& gang) { return gang->suits(step); });
    Gang& gang = found != gangs_.end() ? **found : *gangs_.emplace_back(std::make_unique<Gang>(step.stream().shared()));
    gang.add(step);
    return gang;
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
