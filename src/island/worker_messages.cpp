// Messages that a worker receives and sends.
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/island/worker.hpp"
#include "finch/search/outcomes.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace finch::island {
namespace {

/// Removes the learning curve from a record. Only the archivist receives records with curves, because only the
/// archivist keeps curves.
search::Record without_curve(search::Record record) {
    if (auto* result = std::get_if<search::Result>(&record)) {
        result->individual.curve = {};
    }
    return record;
}

}  // namespace

void Worker::receive() {
    for (const comm::Envelope& envelope : mailbox_.take()) {
        did_something_ = true;
        liveness_.heard(envelope.from, hooks_.steady_seconds());
        search::RecordReader reader(envelope.bytes, options_.run, fmt::format("message of worker {}", envelope.from));
        while (const auto record = reader.next()) {
            handle(*record, envelope.from);
        }
        for (const std::string& problem : reader.problems()) {
            observer_.warned(problem);
        }
    }
}

void Worker::handle(const search::Record& record, int from) {
    if (const auto* message = std::get_if<search::LeaseMessage>(&record)) {
        handle_lease(*message);
    } else if (const auto* archived = std::get_if<search::Archived>(&record)) {
        journal_.forget(archived->records);
        archive_cost_ = archived->seconds;
    } else if (const auto* asked = std::get_if<search::Halt>(&record)) {
        archivist_ ? halt(*asked) : obey(*asked);
    } else if (const auto* sign = std::get_if<search::Alive>(&record)) {
        liveness_.heard(from, hooks_.steady_seconds(), sign->seconds);
    } else {
        merge(record, from);
    }
}

void Worker::handle_lease(const search::LeaseMessage& message) {
    using Kind = search::LeaseMessage::Kind;
    if (message.kind != Kind::grant && message.kind != Kind::exhausted) {
        archivist_->receive(message);
        answer_requests();
        return;
    }
    search::LeaseMessage answer = message;
    const search::Individual* const named = population_.find(message.repeat.of);
    if (named != nullptr ? search::has_failed(*named) : message.repeat.genome.empty()) {
        answer.repeat = {};  // a retry, not a repeat
    }
    if (named != nullptr && answer.repeat.of == search::Id{}) {
        retries_.push_back(named->id);
    }
    lease_client_.receive(answer);
    if (state_ != State::searching) {
        send_lease(Kind::give_back, lease_client_.return_leases());
    }
}

/// World rank 0 only. Answers the lease requests. With options_.one_at_a_time, answers requests only after the
/// unfinished individuals of earlier starts have ended.
void Worker::answer_requests() {
    const bool unfinished_first =
        options_.one_at_a_time && state_ == State::searching && (alone_ || !unfinished_.empty());
    if (archivist_ && !unfinished_first) {
        if (const std::int64_t repeats = archivist_->leases().begin_final_choice(population_); repeats > 0) {
            event("final choice",
                  fmt::format("all others are finished: the best are evaluated again, {} times in all", repeats));
        }
        for (const search::LeaseMessage& answer : archivist_->answers(population_)) {
            if (const auto* of = population_.find(answer.repeat.of); of != nullptr && answer.worker != options_.self) {
                send(answer.worker, without_curve(search::Result{*of}));  // it may be of another island
            }
            send(answer.worker, answer);
        }
    }
}

/// Merges a record of the worker `from` into the population. Tells the observer about a new result.
void Worker::merge(const search::Record& record, int from) {
    if (archivist_) {
        archivist_->merge(record, from);
    }
    const bool is_new = population_.merge(record);
    if (const auto* result = std::get_if<search::Result>(&record); result != nullptr && is_new) {
        if (const auto warning =
                archivist_ ? archivist_->failed().ended(result->individual, population_, hooks_.steady_seconds())
                           : std::nullopt) {
            observer_.warned(*warning);
            publish(search::Event{hooks_.unix_seconds(), options_.self, "failures", *warning}, {});
        }
        observer_.finished(result->individual, population_);
    }
}

bool Worker::publish(search::Record record, std::vector<std::int32_t> to) {
    make_recordable(record);
    const auto message = std::make_shared<Bytes>(search::encode(record, options_.run));
    try {
        journal_.write(*message);
    } catch (const ApiError& error) {
        stop_for_storage(error.what());
        return false;
    }
    const search::Record told = without_curve(record);
    const auto short_message = std::make_shared<Bytes>(search::encode(told, options_.run));
    merge(archivist_ ? record : told, options_.self);
    if (std::find(to.begin(), to.end(), 0) == to.end()) {
        to.push_back(0);
    }
    for (const std::int32_t worker : to) {
        if (worker != options_.self) {
            mailbox_.send(worker, worker == 0 ? message : short_message, true);
        }
    }
    return true;
}

/// Removes invalid parts of a record, with a warning. A later start would refuse the whole record and lose the
/// individual.
void Worker::make_recordable(search::Record& record) {
    search::Individual* const individual = search::individual_of(record);
    const search::Space& space = options_.initial_design.space;
    if (individual != nullptr && space.size() > 0) {
        if (const auto changes = search::make_recordable(*individual, space)) {
            observer_.warned(*changes);
        }
    }
}

void Worker::event(const std::string& kind, const std::string& text) {
    observer_.said(text);
    publish(search::Event{hooks_.unix_seconds(), options_.self, kind, text}, {});
}

void Worker::report() {
    const double now = hooks_.steady_seconds();
    search::WorkerReport told;
    told.restart = options_.restart;
    told.worker = options_.self;
    told.island = island();
    told.ranks = options_.ranks;
    told.threads = options_.threads;
    told.node = options_.node;
    told.device = options_.device;
    told.time = hooks_.unix_seconds();
    told.up_seconds = now - began_;
    told.busy_seconds = busy_seconds_;
    told.evaluations = evaluations_;
    last_report_ = now;
    if (archivist_) {
        merge(told, options_.self);
    } else {
        send(0, told);  // not journaled: the next report replaces it
    }
}

/// If a sign of life is due, sends it to the leaders that watch this leader. Throws if a watched leader is silent.
void Worker::check_liveness() {
    evaluator_.keep_alive(0);
    const double now = hooks_.steady_seconds();
    if (liveness_.sign_is_due(now)) {
        announce(0);
    }
    if (const auto worker = liveness_.silent(now)) {
        const auto at = static_cast<std::size_t>(*worker);
        throw Error(
            fmt::format("worker {} ({}) gave no sign of life for {} s (workers.timeout_seconds, at least three "
                        "report intervals): it is stopped or hangs",
                        *worker, at < options_.leader_names.size() ? options_.leader_names[at] : "of unknown place",
                        liveness_.limit()));
    }
}

/// Announces an operation on files if it may be long. `last_seconds`: how long the operation took the last time; 0: it
/// was never done.
void Worker::announce_if_long(double last_seconds) {
    if (last_seconds <= 0 || last_seconds > 1) {
        announce(allowed_seconds(last_seconds));
    }
}

/// Sends a sign of life. `seconds`, if not 0: an operation begins now and may take this long.
void Worker::announce(double seconds) {
    notify(search::Alive{seconds});
    if (seconds > 0) {
        liveness_.hurry();
    }
}

/// Sends `record` to world rank 0. On world rank 0, sends `record` to every other leader.
void Worker::notify(const search::Record& record) {
    if (!archivist_) {
        send(0, record);
        return;
    }
    for (std::int32_t worker = 1; worker < workers(); ++worker) {
        send(worker, record);
    }
}

void Worker::send(std::int32_t to, const search::Record& record) {
    const bool counted =
        !std::holds_alternative<search::LeaseMessage>(record) && !std::holds_alternative<search::Alive>(record);
    mailbox_.send(to, std::make_shared<Bytes>(search::encode(record, options_.run)), counted);
}

void Worker::send_lease(search::LeaseMessage::Kind kind, std::int64_t count) {
    send(0, search::LeaseMessage{kind, options_.self, count, seconds_per_evaluation_});
}

}  // namespace finch::island
