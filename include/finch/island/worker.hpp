#pragma once

#include "finch/base/stop_request.hpp"
#include "finch/comm/mailbox.hpp"
#include "finch/island/archivist.hpp"
#include "finch/island/evaluator.hpp"
#include "finch/island/initial_points.hpp"
#include "finch/island/island_map.hpp"
#include "finch/island/liveness.hpp"
#include "finch/island/options.hpp"
#include "finch/search/duplicates.hpp"
#include "finch/search/exchange.hpp"
#include "finch/search/inheritance.hpp"
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

/// The clocks and the stop requests that a worker uses. A simulator passes its own functions.
struct Hooks {
    std::function<double()> unix_seconds;
    std::function<double()> steady_seconds;
    std::function<StopRequest()> stop;
    double end_time = 0;  ///< Unix seconds at which the job's time limit ends; 0: there is none
    /// Called when this worker begins to stop before its budget is used, for any reason. `stopping` can arm a watchdog.
    /// May be empty.
    std::function<void()> stopping = {};
    /// Called before a stop because of `end_time`. Returns the end of the job if it was extended, else 0. May be empty.
    std::function<double()> new_end_time = {};
};

/// Options of a worker at its start.
struct WorkerOptions {
    std::uint64_t run = 0;
    std::uint64_t seed = 1;
    std::uint32_t restart = 0;
    std::int32_t self = 0;               ///< index of this worker
    const IslandMap* islands = nullptr;  ///< outlives the worker
    std::vector<EarlierStart> earlier;   ///< earlier starts of the run
    std::int32_t bred_before = 0;        ///< individuals that this worker bred in earlier starts
    double hours_before = 0;             ///< wall time of the earlier starts
    double node_hours_before = 0;        ///< distinct nodes times wall time of the earlier starts
    int nodes = 1;                       ///< distinct nodes of this start
    /// True if earlier starts ended without a record of the cause. Worker 0 then resumes the unfinished individuals one
    /// after another, and nothing else starts before they have ended. Resuming individuals one at a time identifies an
    /// individual that crashes its process.
    bool one_at_a_time = false;
    Budget budget;
    std::optional<search::FinalChoice> final_choice;
    search::ExchangeOptions exchange;
    std::optional<search::InheritOptions> inherit;
    search::InitialDesign initial_design;  ///< without genes: only the propagator breeds
    std::vector<std::uint32_t>
        initial_points_left;  ///< initial points that are free at this start, from initial_points_left()
    search::Duplicates duplicates = search::Duplicates::breed;  ///< ignored in a space without genes
    const search::OtherResults* other_results = nullptr;        ///< of other runs; outlives the worker; null: none
    int retries = 0;                                            ///< per failed genome
    /// The run is given up after this many evaluations of this start without a result, if no start of the run has a
    /// result and most workers have none, either. Without a value, the run is never given up.
    std::optional<std::int64_t> give_up_after;
    double archive_seconds = 10;
    double training_seconds = 60;
    std::string node;
    std::string device;
    std::int32_t ranks = 1;
    std::int32_t threads = 1;
    double timeout_seconds = 0;             ///< for a sign of life of another leader; 0: no leader is watched
    std::vector<std::string> leader_names;  ///< by worker: "rank 4 on n2"
};

/// An observer of events. Every leader has one. World rank 0's observer receives every individual of the run.
class Observer {
public:
    virtual ~Observer() = default;
    virtual void finished(const search::Individual& individual, const search::Population& population) = 0;
    virtual void tick(const search::Population& population) = 0;  ///< called often, between the steps
    virtual void said(const std::string& text) = 0;               ///< an event that users want to read
    virtual void warned(const std::string& text) = 0;
};

/// The reason why a worker ended. `complete`: the budget is used. `stopped`: an orderly stop; unfinished trainings are
/// saved. `urgent`: like `stopped`, but without waiting for other leaders. `storage`: files cannot be written or read.
/// `gave_up`: on world rank 0, an orderly stop because no evaluation gave a result.
enum class ExitReason { complete, stopped, urgent, storage, gave_up };

/// The main loop of a worker, on its leader: receive, breed, advance, finish, exchange, stop. The loop is asynchronous:
/// it has no threads and never blocks. Only world rank 0, which is the archivist, passes an `archive`.
class Worker {
public:
    Worker(WorkerOptions options, search::Population population, search::Propagator& propagator, Evaluator& evaluator,
           Journal& journal, comm::Mailbox& mailbox, Archive* archive, Observer& observer, Hooks hooks);

    /// Runs one round of the loop. Returns false once the worker has ended.
    bool step();
    /// Returns the time in steady seconds at which step() next has work, if no message arrives and no evaluation ends.
    /// Ignores the job's time limit.
    [[nodiscard]] double next_due() const;
    /// Calls step() until the worker has ended. Sleeps for a millisecond after each step that had nothing to do.
    ExitReason run();

    [[nodiscard]] const search::Population& population() const noexcept { return population_; }
    [[nodiscard]] ExitReason exit_reason() const noexcept { return exit_reason_; }

private:
    /// searching: breeds and trains. waiting: has nothing left to train, but other leaders may. closing: waits for
    /// messages that are still in transit. over: the worker has ended.
    enum class State { searching, waiting, closing, over };

    // Main loop: worker.cpp.
    void live();
    void fill_slots();
    void start(search::Individual individual);
    void finish(search::Individual individual);
    void tell_progress();
    void exchange(const search::Individual& after);
    void leave();

    // Breeding and repeated evaluations: worker_breeding.cpp.
    /// Starts the next individual. Returns false if the individual took over another run's result and was not started.
    bool start_next();
    bool start_bred();
    void start_repeat(search::Repeat repeat);
    [[nodiscard]] bool make_heir(search::Individual& individual) const;
    void reuse(search::Individual individual, const search::Individual& twin);
    [[nodiscard]] search::Individual newborn();
    void set_place(search::Individual& individual) const;
    [[nodiscard]] search::Individual retry_of(const search::Individual& failed);
    [[nodiscard]] search::Offspring breed(search::Id id, const search::Stage& now);
    [[nodiscard]] search::Stage stage() const;
    [[nodiscard]] const search::Individual* known_as(const search::Genome& genome) const;
    [[nodiscard]] const search::Individual* known_elsewhere(const search::Genome& genome) const;
    [[nodiscard]] bool is_duplicate_to_skip(const search::Individual& known) const;

    // Messages to and from other workers: worker_messages.cpp.
    void receive();
    void handle(const search::Record& record, int from);
    void handle_lease(const search::LeaseMessage& message);
    void answer_requests();
    void merge(const search::Record& record, int from);
    /// Journals `record`, then sends it to the workers `to` and to the archivist, once to each. Returns false, and
    /// sends nothing, if the journal cannot be written.
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

    // Stopping and saving: worker_stopping.cpp.
    void check_stop();
    [[nodiscard]] std::optional<std::string> used_budget();
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
    /// The individual that trains alone in this worker, because it may have crashed an earlier process.
    std::optional<search::Id> alone_;
    bool did_something_ = false;
    bool is_saving_ = false;
    LeaseClient lease_client_;
    std::optional<Archivist> archivist_;         ///< world rank 0
    std::deque<search::Individual> unfinished_;  ///< individuals of earlier starts that this worker must resume
    std::uint32_t sequence_ = 0;
    std::int32_t generation_ = 0;
    std::int64_t evaluations_ = 0;
    double began_ = 0;       ///< steady seconds
    double busy_since_ = 0;  ///< steady seconds; 0: idle
    double busy_seconds_ = 0;
    double seconds_per_evaluation_ = 0;
    double archive_cost_ = 0;  ///< seconds
    double last_checkpoint_ = 0;
    double last_report_ = 0;
    std::deque<search::Id> retries_;  ///< failed individuals that this worker must retry
    search::KnownGenomes known_genomes_;
    bool looks_for_duplicates_;
    bool tells_of_starts_;    ///< tells the island's leaders, which skip genomes that are in training
    int known_in_a_row_ = 0;  ///< bred genomes in a row that were known already
    Liveness liveness_;
};

}  // namespace finch::island
