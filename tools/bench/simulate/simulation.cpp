#include "simulate/simulation.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/cluster/layout.hpp"
#include "finch/island/worker.hpp"

#include "population_bytes.hpp"
#include "simulate/network.hpp"
#include "virtual_evaluator.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

namespace finch::simulate {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double start_time = 1;              // s; a time of 0 means unset
constexpr double least_between_looks = 1e-3;  // s; Worker::run() sleeps this long

const config::FunctionObjective& function_of(const config::Config& config) {
    if (!std::holds_alternative<config::FunctionObjective>(config.objective)) {
        throw ConfigError(
            "search.objective: this configuration trains networks or starts programs, and a simulation evaluates "
            "benchmark functions only: search.objective: {function: rastrigin, dimensions: 20}");
    }
    return std::get<config::FunctionObjective>(config.objective);
}

island::IslandMap islands_of(const config::Config& config, int workers) {
    const config::Workers& asked = config.workers;
    const int sum = std::accumulate(asked.island_sizes.begin(), asked.island_sizes.end(), 0);
    if (asked.island_sizes.empty() ? workers < asked.islands : workers != sum) {
        throw ConfigError(fmt::format("--workers: {} {}", workers,
                                      asked.island_sizes.empty()
                                          ? fmt::format("are too few for {} islands (workers.islands)", asked.islands)
                                          : fmt::format("where workers.islands asks for {} in all", sum)));
    }
    const std::vector<std::string> node_of_rank(static_cast<std::size_t>(workers), "simulated");
    cluster::Layout layout = cluster::make_layout(node_of_rank, {1, asked.islands, asked.island_sizes});
    return {std::move(layout.island_of_worker), layout.islands};
}

/// A journal that writes nothing.
class NoJournal : public island::Journal {
public:
    void write(const Bytes&) override {}
    void sync(bool) override {}
    void forget(std::uint64_t) override {}
};

/// An archive that keeps only the busy time that the workers reported.
class Reports : public island::Archive {
public:
    explicit Reports(int workers) : busy_seconds_(static_cast<std::size_t>(workers)) {}
    void event(const search::Event&) override {}
    void report(const search::WorkerReport& report) override {
        busy_seconds_.at(static_cast<std::size_t>(report.worker)) = report.busy_seconds;
    }
    bool write(const search::Population&) override { return true; }
    [[nodiscard]] double busy_seconds() const {
        return std::accumulate(busy_seconds_.begin(), busy_seconds_.end(), 0.0);
    }

private:
    std::vector<double> busy_seconds_;  ///< by worker
};

class StrictObserver : public island::Observer {
public:
    void finished(const search::Individual&, const search::Population&) override {}
    void tick(const search::Population&) override {}
    void said(const std::string&) override {}
    void warned(const std::string& text) override { throw Error("in a simulated run: " + text); }
};

class Simulation {
public:
    Simulation(const config::Config& config, const Options& options, std::uint64_t seed);
    /// Steps the workers until all workers have ended.
    void run();
    [[nodiscard]] Result result() const;

private:
    /// A time at which a worker is to be stepped. Wakes are ordered by time, then by the order of their scheduling.
    struct Wake {
        double time = 0;
        std::uint64_t number = 0;
        int worker = 0;
        bool operator>(const Wake& other) const noexcept {
            return time != other.time ? time > other.time : number > other.number;
        }
    };
    struct Seat {
        VirtualEvaluator evaluator;
        std::unique_ptr<search::Propagator> propagator;
        std::unique_ptr<island::Worker> worker;
        double wake = never;  ///< the time of its valid Wake; its other Wakes are obsolete
    };

    void add_worker(const config::Config& config, const Options& options, int self);
    void schedule(int worker, double time);
    [[nodiscard]] Seat& seat(int worker) { return seats_[static_cast<std::size_t>(worker)]; }
    [[nodiscard]] double next_step(int worker);

    std::uint64_t seed_;
    search::FunctionInstance function_;
    island::IslandMap islands_;
    search::InitialDesign initial_design_;
    double now_ = start_time;
    Network network_;
    NoJournal journal_;
    Reports reports_;
    StrictObserver observer_;
    std::vector<Seat> seats_;
    std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
    std::uint64_t wakes_scheduled_ = 0;
};

Simulation::Simulation(const config::Config& config, const Options& options, std::uint64_t seed)
    : seed_(seed),
      function_(function_of(config).make_instance()),
      islands_(islands_of(config, options.workers)),
      initial_design_(config.initial_design(config.first_points())),
      network_(
          options.workers, options.message_seconds, [this] { return now_; },
          [this](int worker, double time) { schedule(worker, time); }),
      reports_(options.workers) {
    seats_.reserve(static_cast<std::size_t>(options.workers));
    for (int worker = 0; worker < options.workers; ++worker) {
        add_worker(config, options, worker);
    }
}

void Simulation::add_worker(const config::Config& config, const Options& options, int self) {
    seats_.push_back({VirtualEvaluator(function_, options.duration, seed_, config.workers.slots, now_),
                      search::make_propagator(config.propagator_of(islands_.island_of(self)), config.space, seed_),
                      nullptr});
    Seat& mine = seats_.back();
    schedule(self, now_);  // first, because the constructor of Worker sends messages
    island::WorkerOptions worker;
    worker.seed = seed_;
    worker.self = self;
    worker.islands = &islands_;
    worker.budget = config.budget;
    worker.final_choice = config.final_choice;
    worker.exchange = config.exchange;
    worker.duplicates = config.duplicates;
    worker.retries = config.retries;
    worker.initial_design = initial_design_;
    worker.initial_points_left.resize(worker.initial_design.initial_points());
    std::iota(worker.initial_points_left.begin(), worker.initial_points_left.end(), 0U);
    worker.archive_seconds = config.checkpoint.archive_seconds;
    worker.training_seconds = config.checkpoint.training_seconds;
    worker.timeout_seconds = config.workers.timeout_seconds;
    const auto clock = [this] { return now_; };
    mine.worker = std::make_unique<island::Worker>(
        std::move(worker), search::Population(config.exchange.kind, islands_.islands(), config.costs), *mine.propagator,
        mine.evaluator, journal_, network_.mailbox(self), self == 0 ? &reports_ : nullptr, observer_,
        island::Hooks{clock, clock, [] { return StopRequest::none; }});
}

void Simulation::schedule(int worker, double time) {
    if (static_cast<std::size_t>(worker) < seats_.size() && time < seat(worker).wake) {
        seat(worker).wake = time;
        wakes_.push({time, wakes_scheduled_++, worker});
    }
}

void Simulation::run() {
    std::size_t alive = seats_.size();
    while (alive > 0) {
        if (wakes_.empty()) {
            throw Error(fmt::format("the simulation stands still: {} workers wait for nothing", alive));
        }
        const Wake wake = wakes_.top();
        wakes_.pop();
        if (wake.time != seat(wake.worker).wake) {
            continue;
        }
        if (wake.time < now_) {
            throw Error(fmt::format("worker {} of the simulation goes back in time", wake.worker));
        }
        now_ = wake.time;
        seat(wake.worker).wake = never;
        if (seat(wake.worker).worker->step()) {
            schedule(wake.worker, next_step(wake.worker));
        } else {
            seat(wake.worker).wake = -never;  // prevents further steps
            --alive;
        }
    }
}

/// Returns the time of the worker's next step.
double Simulation::next_step(int worker) {
    Seat& mine = seat(worker);
    if (mine.evaluator.take_has_ended()) {
        return now_;  // a slot is free
    }
    const double timer = std::max(mine.worker->next_due(), now_ + least_between_looks);
    return std::min({timer, mine.evaluator.next_event(), network_.next_arrival(worker)});
}

Result Simulation::result() const {
    const search::Population& all = seats_.front().worker->population();
    double last_end = start_time;
    double bytes = 0;
    for (const Seat& one : seats_) {
        last_end = std::max(last_end, one.evaluator.last_end());
        bytes += static_cast<double>(population_bytes(one.worker->population()));
    }
    const auto workers = static_cast<double>(seats_.size());
    const search::Individual* best = all.best();
    Result result;
    result.seed = seed_;
    result.evaluations = static_cast<std::int64_t>(all.evaluations());
    result.best = best != nullptr ? best->loss : search::Individual::not_measured;
    result.hours = (last_end - start_time) / 3600;
    result.busy_fraction = last_end > start_time ? reports_.busy_seconds() / (workers * (last_end - start_time)) : 0;
    result.messages = network_.messages();
    result.archivist_bytes = static_cast<double>(population_bytes(all));
    result.leader_bytes = seats_.size() > 1 ? (bytes - result.archivist_bytes) / (workers - 1) : bytes;
    return result;
}

}  // namespace

void check(const config::Config& config, const Options& options) {
    static_cast<void>(function_of(config));
    static_cast<void>(islands_of(config, options.workers));
    if (config.first.run) {
        throw ConfigError(
            "search.first.run: a simulation reads no run directory; accepted: a list of guesses, search.first: "
            "[{GENE: VALUE}]");
    }
    if (!config.reuse.empty()) {
        throw ConfigError("search.reuse: a simulation reads no run directory; accepted: none");
    }
    if (config.exchange.topology == search::Topology::nodes) {
        throw ConfigError("search.exchange.topology: a simulation has no nodes; accepted: every other topology");
    }
    if (config.budget.node_hours) {
        throw ConfigError(
            "search.budget.node_hours: a simulation has no nodes; accepted: evaluations, generations, hours, "
            "target_loss");
    }
}

Result run(const config::Config& config, const Options& options, std::uint64_t seed) {
    check(config, options);
    const double begin = steady_seconds();
    config::Config resolved = config;
    const island::IslandMap islands = islands_of(config, options.workers);
    std::vector<int> workers;
    for (int island = 0; island < islands.islands(); ++island) {
        workers.push_back(static_cast<int>(islands.leaders_of(island).workers.size()));
    }
    resolved.resolve_populations(workers);
    Simulation simulation(resolved, options, seed);
    simulation.run();
    Result result = simulation.result();
    result.wall_seconds = steady_seconds() - begin;
    return result;
}

}  // namespace finch::simulate
