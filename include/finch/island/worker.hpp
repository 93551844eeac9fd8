#pragma once

#include "finch/base/stop_request.hpp"
#include "finch/comm/mailbox.hpp"
#include "finch/island/archivist.hpp"
#include "finch/island/evaluator.hpp"
#include "finch/island/initial_points.hpp"
#include "finch/island/island_map.hpp"
#include "finch/island/liveness.hpp"
#include "finch/island/options.hpp"
#include "finch/island/retries.hpp"
#include "finch/search/duplicates.hpp"
#include "finch/search/exchange.hpp"
#include "finch/search/initial_design.hpp"
#include "finch/search/population.hpp"
#include "finch/search/propagator.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace finch::island {

/// The world around a worker; a simulator hands in its own.
struct Hooks {
    std::function<double()> unix_seconds;
    std::function<double()> steady_seconds;
    std::function<StopRequest()> stop;
    double end_time = 0;  ///< Unix seconds at which the job's time is over; 0: never
    /// Called where this worker begins to stop in order, by whatever asked for it: time to arm a watchdog. May be
    /// empty.
    std::function<void()> stopping = {};
};

/// Options of a worker at its start.
struct WorkerOptions {
    std::uint64_t run = 0;
    std::uint64_t seed = 1;
    std::uint32_t restart = 0;
    std::int32_t self = 0;               ///< worker
    const IslandMap* islands = nullptr;  ///< outlives the worker
    std::vector<EarlierStart> earlier;   ///< starts of the run
    std::int32_t bred_before = 0;        ///< by this worker in the earlier starts
    double hours_before = 0;             ///< wall time of the earlier starts
    double node_hours_before = 0;        ///< distinct nodes times wall time of the earlier starts
    int nodes = 1;                       ///< distinct ones of this start
    /// After starts that ended without a note: the unfinished resume one after the other, on worker 0, and nothing
    /// else starts before they are through, so that the one which ends the process is known.
    bool one_at_a_time = false;
    Budget budget;
    std::optional<search::FinalChoice> final_choice;
    search::ExchangeOptions exchange;
    std::size_t bred_from = 0;             ///< of an island's best the propagators of other islands look at so many
    search::InitialDesign initial_design;  ///< a space without genes: whatever the propagator breeds
    std::vector<std::uint32_t>
        initial_points_left;  ///< of the initial design, at this start; initial_points_left() says them
    search::Duplicates duplicates = search::Duplicates::breed;  ///< not looked at without genes
    const search::OtherResults* other_results = nullptr;        ///< of other runs; outlives the worker; null: none
    int retries = 0;                                            ///< of what failed
    /// The run is given up after so many evaluations of this start without a result, as long as no start of the run has
    /// one; nothing: never.
    std::optional<std::int64_t> give_up_after;
    double archive_seconds = 10;
    double training_seconds = 60;
    std::string node;
    std::string device;
    std::int32_t ranks = 1;
    std::int32_t threads = 1;
    double timeout_seconds = 0;             ///< without a sign of life of another leader; 0: no leader is watched
    std::vector<std::string> leader_names;  ///< by worker: "rank 4 on n2"
};

/// Hears what happens, on every leader. World rank 0 hears of every individual of the run.
class Observer {
public:
    virtual ~Observer() = default;
    virtual void finished(const search::Individual& individual, const search::Population& population) = 0;
    virtual void tick(const search::Population& population) = 0;  ///< often; between the steps
    virtual void said(const std::string& text) = 0;               ///< an event that a user wants to read
    virtual void warned(const std::string& text) = 0;
};

/// How a worker's life ended. `complete`: the budget is used. `stopped`: an orderly stop; unfinished trainings are
/// saved. `urgent`: like it, but without waiting. `storage`: nothing can be written any more. `gave_up`:
/// on world rank 0, an orderly stop because no evaluation gives a result.
enum class ExitReason { complete, stopped, urgent, storage, gave_up };

/// The asynchronous life of a worker, on its leader: receive, breed, advance, finish, exchange, stop. No thread, and
/// nothing in it waits. `archive` is given on world rank 0 alone, which is the archivist.
class Worker {
public:
    Worker(WorkerOptions options, search::Population population, search::Propagator& propagator, Evaluator& evaluator,
           Journal& journal, comm::Mailbox& mailbox, Archive* archive, Observer& observer, Hooks hooks);

    /// One round of the loop. False once the life is over.
    bool step();
    /// When step() has something to do although no message comes and no evaluation ends, in steady seconds. The end of
    /// the job's time is not looked at.
    [[nodiscard]] double next_due() const;
    /// step() until over; sleeps a millisecond if there was nothing to do.
    ExitReason run();

    [[nodiscard]] const search::Population& population() const noexcept { return population_; }
    [[nodiscard]] ExitReason exit_reason() const noexcept { return exit_reason_; }

private:
    /// searching: breeds and trains. waiting: has nothing left to train, other leaders have. closing: what was sent is
    /// still to arrive.
    enum class State { searching, waiting, closing, over };

    // The life: worker.cpp.
    void live();
    void fill_slots();
    void start(search::Individual individual);
    void finish(search::Individual individual);
    void tell_progress();
    void exchange(const search::Individual& after);
    void leave();

    // What it breeds, and evaluates once more: worker_breeding.cpp.
    /// False if a result of another run was taken over in place of a start.
    bool start_next();
    bool start_bred();
    void start_repeat(search::Repeat repeat);
    void reuse(search::Individual individual, const search::Individual& twin);
    [[nodiscard]] search::Individual newborn();
    [[nodiscard]] search::Offspring breed(search::Id id, const search::Stage& now);
    [[nodiscard]] search::Stage stage() const;
    [[nodiscard]] const search::Individual* known_as(const search::Genome& genome) const;
    [[nodiscard]] const search::Individual* known_elsewhere(const search::Genome& genome) const;
    [[nodiscard]] bool is_duplicate_to_skip(const search::Individual& known) const;
    [[nodiscard]] std::pair<std::size_t, std::size_t> place_on_island() const;

    // What it hears and says: worker_messages.cpp.
    void receive();
    void handle(const search::Record& record, int from);
    void handle_lease(const search::LeaseMessage& message);
    void answer_requests();
    void merge(const search::Record& record, int from);
    /// Journals `record`, then tells `to` and the archivist, each once. False if it could not be written: it was not
    /// sent of it.
    bool publish(search::Record record, std::vector<std::int32_t> to);
    void make_recordable(search::Record& record);
    void event(const std::string& kind, const std::string& text);
    void report();
    void check_liveness();
    void announce(double seconds);
    void announce_if_long(double last_seconds);
    void notify(const search::Record& record);
    void send(std::int32_t to, const search::Record& record);
    void send_lease(search::LeaseMessage::Kind kind, std::int64_t count);
    [[nodiscard]] const std::vector<std::int32_t>& leaders_of(int island) const {
        return options_.islands->leaders_of(island).workers;
    }
    [[nodiscard]] int workers() const noexcept { return options_.islands->workers(); }
    [[nodiscard]] int island() const { return options_.islands->island_of(options_.self); }

    // Why it stops, and what it writes: worker_stopping.cpp.
    void check_stop();
    [[nodiscard]] std::optional<std::string> used_budget() const;
    [[nodiscard]] bool gives_up() const;
    void give_up();
    [[nodiscard]] double report_due() const;
    [[nodiscard]] double checkpoint_due() const { return last_checkpoint_ + options_.training_seconds; }
    void halt(const search::Halt& asked);
    void obey(const search::Halt& halt);
    void save_and_leave(ExitReason reason);
    void stop_for_storage(const std::string& why);
    void record_saved(const std::function<std::vector<search::Individual>()>& save);
    void sync_journal(bool now);
    void housekeeping();
    void write_archive();

    WorkerOptions options_;
    search::Population population_;
    search::Propagator& propagator_;
    Evaluator& evaluator_;
    Journal& journal_;
    comm::Mailbox& mailbox_;
    Observer& observer_;
    Hooks hooks_;

    State state_ = State::searching;
    ExitReason exit_reason_ = ExitReason::complete;
    /// In training with nothing beside it in this worker, since it may be the one that ends the process.
    std::optional<search::Id> alone_;
    bool did_something_ = false;
    bool is_saving_ = false;
    LeaseClient lease_client_;
    std::optional<Archivist> archivist_;         ///< world rank 0
    std::deque<search::Individual> unfinished_;  ///< of an earlier start, dealt to this worker
    std::uint32_t sequence_ = 0;
    std::int32_t generation_ = 0;
    std::int64_t evaluations_ = 0;
    double began_ = 0;       ///< steady
    double busy_since_ = 0;  ///< steady; 0: idle
    double busy_seconds_ = 0;
    double seconds_per_evaluation_ = 0;
    double archive_cost_ = 0;  ///< seconds
    double last_checkpoint_ = 0;
    double last_report_ = 0;
    Retries retries_;
    /// World rank 0: evaluations that may still end without a result before the run is given up; nothing: it has one.
    std::optional<std::int64_t> failures_left_;
    search::KnownGenomes known_genomes_;
    bool looks_for_duplicates_;
    bool tells_of_starts_;    ///< so that others of the island know what is in training, which it asks for itself
    int known_in_a_row_ = 0;  ///< genomes that were bred since the last one that was not
    Liveness liveness_;
};

}  // namespace finch::island
