#include "finch/evaluate/slots.hpp"

#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/out_of_memory.hpp"
#include "finch/cluster/end_notes.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <span>
#include <utility>
#include <variant>

namespace finch::evaluate {
namespace {

/// Records a fault of this process if an exception escapes from obey(). The exception ends the process, and the next
/// start counts the crash against the individuals in training.
class RecordFaultOnUnwind {
public:
    RecordFaultOnUnwind() = default;
    ~RecordFaultOnUnwind() {
        if (std::uncaught_exceptions() > exceptions_) {
            cluster::note_end(cluster::ExitCause::own_fault);
        }
    }
    RecordFaultOnUnwind(const RecordFaultOnUnwind&) = delete;
    RecordFaultOnUnwind& operator=(const RecordFaultOnUnwind&) = delete;

private:
    int exceptions_ = std::uncaught_exceptions();
};

Status status_of(train::State state) {
    switch (state) {
        case train::State::running:
            return Status::running;
        case train::State::finished:
            return Status::finished;
        case train::State::diverged:
            return Status::diverged;
        case train::State::pruned:
            return Status::pruned;
    }
    return Status::failed;
}

std::int64_t bytes_of(const NamedArrays& arrays) {
    std::size_t bytes = 0;
    for (const NamedArray& array : arrays) {
        std::visit([&](const auto& values) { bytes += std::span(values).size_bytes(); }, array.values);
    }
    return static_cast<std::int64_t>(bytes);
}

}  // namespace

Slots::Slots(const config::Config& config, const data::Datasets& datasets, backend::Device& device,
             const comm::Group& group, cluster::AllReduceKind communicator, train::Profile* profile,
             energy::Meter* meter)
    : config_(config),
      datasets_(datasets),
      group_(group),
      profile_(profile),
      exceptions_(std::uncaught_exceptions()),
      slots_(static_cast<std::size_t>(config.workers.slots)),
      energy_(meter, slots_.size()) {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        streams_.push_back(device.new_stream());
    }
    // Several slots share a communicator of several ranks only on CPUs. On CPUs, the sequence of Orders fixes the order
    // of the sums.
    all_reduce_ = comm::make_all_reduce(communicator, group, *streams_.front(), config.workers.timeout_seconds);
    if (config.trains()) {  // with another objective, followers have no Slots
        comm::check_sum(*all_reduce_, group, *streams_.front());
    }
}

Slots::~Slots() {
    if (std::uncaught_exceptions() > exceptions_) {
        all_reduce_->give_up();
    }
}

std::vector<Status> Slots::obey(const Order& order) {
    const RecordFaultOnUnwind blame;
    switch (order.kind) {
        case Order::Kind::start:
            return {start(order)};
        case Order::Kind::snapshot: {
            const backend::LapScope scope(profile_, backend::Activity::snapshot);
            snapshot_ = slots_.at(order.slot)->snapshot();
            if (!group_.is_leader()) {
                snapshot_.clear();  // only the leader writes it
            }
            sum_energy(order.slot);
            return {Status::running};
        }
        case Order::Kind::report:
            report_ = profile_->report(group_);
            return {Status::running};
        case Order::Kind::release:
            slots_.at(order.slot).reset();
            return {Status::finished};
        case Order::Kind::wait:
            return {agree(Status::running, "")};
        case Order::Kind::signal:
        case Order::Kind::end:
        case Order::Kind::dismiss:
            return {Status::finished};
        case Order::Kind::advance:
            break;
    }
    std::vector<Status> answers;
    for (const Order::Steps& steps : order.steps) {
        answers.push_back(advance(steps));
    }
    return answers;
}

/// Returns the status of `work` on this rank. If `work` throws, returns the kind of failure and the error text.
template <class Work>
std::pair<Status, std::string> Slots::attempt(Work&& work) const {
    try {
        return {work(), ""};
    } catch (const std::bad_alloc& error) {
        const bool is_known = dynamic_cast<const OutOfMemory*>(&error) != nullptr;
        return {Status::out_of_memory, fmt::format("out of memory on rank {} of the worker{}", group_.rank(),
                                                   is_known ? std::string(": ") + error.what() : "")};
    } catch (const StorageError& error) {
        return {Status::storage, error.what()};
    } catch (const std::exception& error) {
        return {Status::failed, error.what()};
    }
}

/// All ranks agree on the status in this function, because a failure or a loss that is not finite may occur on one rank
/// only. The training has already run the collectives of all its steps, so no rank waits for a failed rank.
Status Slots::advance(const Order::Steps& steps) {
    const std::uint32_t slot = steps.slot;
    if (!group_.is_leader()) {
        energy_.set_worked(slot, steps.seconds);
    }
    const auto [mine, text] = attempt([&] {
        train::Training& training = *slots_.at(slot);
        training.advance(steps.count);
        return status_of(training.state());
    });
    if (group_.is_leader()) {
        energy_.set_worked(slot, slots_.at(slot)->step_seconds());
    }
    const Status all = agree(mine, text);
    if (all != Status::running) {
        sum_energy(slot);
    }
    if (all >= Status::out_of_memory) {
        // check_health() runs on every rank: the device of a peer may wait for sums that the failed rank never started.
        check_health(slot);
    }
    return all;
}

void Slots::launch_waiting_steps() {
    streams_.front()->launch_waiting_steps();
    for (const auto& training : slots_) {
        if (training) {
            training->enqueue_validation();
        }
    }
    streams_.front()->launch_waiting_steps();
}

/// Collective over the worker. Counts the leader's training time on all ranks, because a training also occupies ranks
/// that wait for others or for an Order.
void Slots::sum_energy(std::uint32_t slot) {
    const std::array mine{slots_.at(slot)->step_seconds()};
    energy_.set_worked(slot, group_.gather(mine).front());
    joules_ = sum(group_, energy_.joules(slot));
}

double Slots::joules_so_far(std::uint32_t slot) {
    energy_.set_worked(slot, slots_.at(slot)->step_seconds());
    return energy_.joules(slot) * group_.size();
}

/// Throws if the device or the communicator failed. Without this check, all following individuals would fail too and
/// use up the whole budget.
void Slots::check_health(std::uint32_t slot) {
    all_reduce_->synchronize();
    streams_.at(slot)->synchronize();
}

std::int64_t Slots::largest_snapshot() const {
    std::int64_t largest = 0;
    for (const auto& training : slots_) {
        largest = std::max(largest, training ? training->plan().snapshot_bytes : 0);
    }
    return largest;
}

/// Allocates all memory before the ranks agree: if a follower has no memory, all ranks release the slot together.
Status Slots::start(const Order& order) {
    const auto [mine, text] = attempt([&] {
        slots_.at(order.slot) = std::make_unique<train::Training>(
            *streams_.at(order.slot), group_, *all_reduce_, datasets_,
            config_.recipe(order.individual.genome, order.individual.id.value),
            train::HostMemory{largest_snapshot(), bytes_of(order.snapshot) + bytes_of(order.weights)}, profile_);
        if (config_.inherit) {
            slots_.at(order.slot)->pause_after_epochs();
        }
        if (order.continues_parent) {
            slots_.at(order.slot)->continue_from(order.snapshot);
        } else if (!order.snapshot.empty()) {
            slots_.at(order.slot)->restore(order.snapshot);
        } else if (!order.weights.empty()) {
            slots_.at(order.slot)->begin_with(order.weights);
        }
        return Status::running;
    });
    if (mine >= Status::out_of_memory) {
        check_health(order.slot);
    }
    const Status all = agree(mine, text);
    if (all != Status::running) {
        slots_.at(order.slot).reset();
    }
    energy_.begin(order.slot);
    return all;
}

Status Slots::agree(Status mine, const std::string& text) {
    const backend::LapScope scope(profile_, backend::Activity::wait);
    const Status all = evaluate::agree(group_, mine);
    problem_.clear();
    if (all >= Status::out_of_memory) {
        for (const std::string& said : comm::gather_all(group_.get(), text)) {
            problem_ = problem_.empty() ? said : problem_;
        }
    }
    return all;
}

}  // namespace finch::evaluate
