#include "finch/evaluate/group_evaluator.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/end_notes.hpp"
#include "finch/search/inheritance.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <string_view>
#include <utility>

namespace finch::evaluate {
namespace {

/// Records a fault of this process if an exception escapes from obey(). The exception ends the process, and the next
/// start counts the crash against the individuals that it evaluated.
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

/// Simulates an individual that kills its process in tests. If FINCH_TEST_POISON is "ID:SIGNAL" and names this
/// individual, raises the signal.
void die_of(search::Id id) {
    // This calls getenv() because cluster::Environment copies all variables, which takes longer than evaluating a
    // function.
    const char* wanted = std::getenv("FINCH_TEST_POISON");
    const std::string_view text = wanted != nullptr ? wanted : "";
    const std::size_t colon = text.find(':');
    if (colon != std::string_view::npos && text.substr(0, colon) == search::to_text(id)) {
        std::raise(std::stoi(std::string(text.substr(colon + 1))));
    }
}

}  // namespace

search::Outcome outcome_of(Status status) {
    switch (status) {
        case Status::running:
            return search::Outcome::stopped;
        case Status::finished:
            return search::Outcome::evaluated;
        case Status::pruned:
            return search::Outcome::pruned;
        case Status::diverged:
            return search::Outcome::diverged;
        case Status::out_of_memory:
            return search::Outcome::out_of_memory;
        case Status::failed:
        case Status::port_taken:
        case Status::not_started:
        case Status::storage:
            break;
    }
    return search::Outcome::failed;
}

GroupEvaluator::GroupEvaluator(const config::Config& config, const comm::Group& group, energy::Meter* meter,
                               std::optional<train::Profile> profile)
    : config_(config),
      group_(group),
      slots_(static_cast<std::size_t>(config.workers.slots)),
      profile_(std::move(profile)),
      shares_(meter, slots_.size()) {}

std::uint32_t GroupEvaluator::free_slot() const {
    const auto found = std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.used; });
    return static_cast<std::uint32_t>(found - slots_.begin());
}

bool GroupEvaluator::has_free_slot() const {
    return !waiting_ && failure_.empty() && free_slot() < slots_.size();
}

bool GroupEvaluator::idle() const {
    return failed_.empty() && !waiting_ && failure_.empty() && used_slots().empty();
}

bool GroupEvaluator::wants_soon() const {
    const auto used = used_slots();
    return used.size() < slots_.size() || std::any_of(used.begin(), used.end(), [this](std::uint32_t slot) {
               return seconds_left(slot) < island::lease_ahead_seconds;
           });
}

std::vector<std::uint32_t> GroupEvaluator::used_slots() const {
    std::vector<std::uint32_t> used;
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
        if (slots_[slot].used) {
            used.push_back(slot);
        }
    }
    return used;
}

void GroupEvaluator::start(search::Individual individual, const search::Population& population) {
    begin(free_slot(), std::move(individual), population);
}

void GroupEvaluator::begin(std::uint32_t slot, search::Individual individual, const search::Population& population) {
    Order order{.kind = Order::Kind::start, .slot = slot};
    prepare(individual, order, population);
    individual.started = individual.started > 0 ? individual.started : unix_seconds();
    order.individual = individual;
    die_of(individual.id);
    Status status = command(order).status;
    if (status == Status::failed && !order.snapshot.empty()) {
        spdlog::warn("the snapshot of {} cannot be used ({}); it begins anew", to_text(individual.id), problem_);
        order.snapshot.clear();
        order.continues_parent = false;
        individual.training_seconds = 0;
        search::begin_anew(individual);
        status = command(order).status;
    }
    if (status == Status::out_of_memory && !used_slots().empty()) {
        waiting_ = std::move(individual);  // there may be memory once another training has ended
        return;
    }
    if (status == Status::storage) {
        throw StorageError(problem_);
    }
    const double joules_before = individual.training_seconds > 0 ? individual.joules : 0;
    if (status != Status::running) {
        individual.outcome = outcome_of(status);
        individual.problem = problem_;
        individual.finished = unix_seconds();
        individual.joules = joules_before;
        failed_.push_back(std::move(individual));
        return;
    }
    const std::int32_t rung = individual.pruning->rung;
    const std::int32_t epochs = individual.epochs;
    slots_[slot] = {.used = true,
                    .individual = std::move(individual),
                    .rung = rung,
                    .epochs = epochs,
                    .joules_before = joules_before};
    begun(order);
}

std::vector<search::Individual> GroupEvaluator::advance(const search::Population& population) {
    if (!failure_.empty()) {
        throw StorageError(std::exchange(failure_, ""));
    }
    if (waiting_ && std::exchange(has_room_, false)) {
        start(*std::exchange(waiting_, std::nullopt), population);
    }
    std::vector<search::Individual> done = std::exchange(failed_, {});
    if (!wait()) {
        return done;
    }
    for (const std::uint32_t slot : used_slots()) {
        try {
            if (auto individual = poll(slot, population)) {
                done.push_back(std::move(*individual));
            }
        } catch (const StorageError& error) {
            if (done.empty()) {
                throw;
            }
            failure_ = error.what();
            break;
        }
    }
    return done;
}

std::vector<search::Individual> GroupEvaluator::take_progress() {
    std::vector<search::Individual> told;
    for (const std::uint32_t number : used_slots()) {
        Slot& slot = slots_[number];
        const bool is_at_rung = search::compares_at_rungs(config_.pruning) && slot.individual.pruning->rung > slot.rung;
        const bool is_due = config_.budget.epochs || steady_seconds() >= slot.tell_at;
        if (is_at_rung || (is_due && slot.individual.epochs > slot.epochs)) {
            slot.rung = slot.individual.pruning->rung;
            slot.epochs = slot.individual.epochs;
            describe_progress(number);
            told.push_back(slot.individual);
        }
    }
    return told;
}

std::vector<const search::Individual*> GroupEvaluator::in_progress() const {
    std::vector<const search::Individual*> all;
    for (const std::uint32_t slot : used_slots()) {
        all.push_back(&slots_[slot].individual);
    }
    return all;
}

void GroupEvaluator::complete(Slot& slot) const {
    search::Individual& individual = slot.individual;
    individual.finished = unix_seconds();
    individual.joules = joules_of(slot);
    auto problem = search::judge(config_.costs, config_.limits, individual);
    if (problem && individual.outcome == search::Outcome::evaluated) {
        individual.outcome = search::Outcome::failed;
        individual.problem = std::move(*problem);
    }
}

search::Individual GroupEvaluator::take(std::uint32_t slot) {
    has_room_ = true;
    return std::exchange(slots_[slot], {}).individual;
}

void GroupEvaluator::keep_alive(double seconds) {
    if (seconds > 0 || steady_seconds() - last_order_ > seconds_between_orders) {
        command({.kind = Order::Kind::wait, .seconds_to_next = seconds});
    }
}

// An Order's bytes may contain a snapshot, so they are freed before the Order is obeyed.
Answer GroupEvaluator::command(const Order& order) {
    if (group_.size() > 1) {
        Bytes bytes = encode(order);
        group_.broadcast(bytes);
    }
    last_order_ = steady_seconds();
    return obey(order);
}

void GroupEvaluator::follow() {
    constexpr double seconds_to_first_order = 600;  // the leader reads the run first
    Order order{.kind = Order::Kind::wait, .seconds_to_next = seconds_to_first_order};
    do {
        Bytes bytes;
        {
            const backend::LapScope scope(profile(), backend::Activity::wait);
            group_.broadcast(bytes, std::max(seconds_of_silence, order.seconds_to_next));
        }
        order = decode_order(bytes);
        obey(order);
    } while (order.kind != Order::Kind::dismiss);
}

Answer GroupEvaluator::obey(const Order& order) {
    const RecordFaultOnUnwind blame;
    Answer answer;
    switch (order.kind) {
        case Order::Kind::start:
            shares_.begin(order.slot);
            return on_start(order);
        case Order::Kind::advance:
            shares_.set_worked(order.slot, order.worked);
            answer = on_advance(order);
            if (!answer.runs) {
                sum_joules(order.slot);
            }
            break;
        case Order::Kind::snapshot:
            on_snapshot(order);
            sum_joules(order.slot);
            break;
        case Order::Kind::release:
            sum_joules(order.slot);
            on_release(order);
            break;
        case Order::Kind::signal:
            on_signal();
            break;
        case Order::Kind::end:
            on_end(order);
            break;
        case Order::Kind::report:
            report_ = profile_->report(group_);
            break;
        case Order::Kind::wait:
            answer.status = agree(Status::running, "");
            break;
        case Order::Kind::dismiss:
            on_dismiss();
            break;
    }
    return answer;
}

const train::ProfileReport& GroupEvaluator::report() {
    command({.kind = Order::Kind::report});
    return report_;
}

Status GroupEvaluator::agree(Status mine, const std::string& text) {
    const backend::LapScope scope(profile(), backend::Activity::wait);
    const Status all = evaluate::agree(group_, mine);
    problem_.clear();
    if (all >= Status::out_of_memory) {
        for (const std::string& said : comm::gather_all(group_.get(), text)) {
            problem_ = problem_.empty() ? said : problem_;
        }
    }
    return all;
}

/// Collective over the worker. Counts the leader's time on all ranks, because an evaluation also occupies ranks that
/// wait for others or for an Order.
void GroupEvaluator::sum_joules(std::uint32_t slot) {
    shares_.set_worked(slot, group_.gather(std::array{worked(slot)}).front());
    const std::vector<double> all = group_.gather(std::array{shares_.joules(slot)});
    joules_ = std::accumulate(all.begin(), all.end(), 0.0);
}

double GroupEvaluator::joules_so_far(std::uint32_t slot) {
    shares_.set_worked(slot, worked(slot));
    return slots_[slot].joules_before + shares_.joules(slot) * group_.size();
}

}  // namespace finch::evaluate
