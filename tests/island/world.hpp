#pragma once

#include "finch/island/worker.hpp"

#include "simulate/network.hpp"
#include "support/simulated_world.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace finch::island {

using namespace finch::testing;

inline search::Space plane() {
    search::Space space;
    space.genes = {{"x", search::RealGene{-5, 5, search::Scale::linear}},
                   {"y", search::RealGene{-5, 5, search::Scale::linear}}};
    return space;
}

/// A run of several workers in one thread, with a simulated clock. The journals remain after a simulated kill.
class World {
public:
    static constexpr double seconds_of_round = 0.001;

    /// A message takes `delay` rounds of `seconds_of_round`.
    World(int workers, int islands, Budget budget, search::ExchangeKind kind, int delay = 3)
        : budget_(budget),
          kind_(kind),
          islands_(islands),
          delay_(delay),
          journals_(static_cast<std::size_t>(workers)) {}

    /// Starts all workers. Then steps them in turn until all have ended or `rounds` rounds are done. A small `rounds`
    /// simulates a kill. Returns whether all workers have ended.
    bool run(int rounds, int workers_now = 0) {
        const int count = workers_now > 0 ? workers_now : static_cast<int>(journals_.size());
        journals_.resize(static_cast<std::size_t>(std::max<int>(count, static_cast<int>(journals_.size()))));
        start(count);
        return go_on(rounds);
    }

    /// Steps the existing workers, without a new start. Returns whether all workers have ended.
    bool go_on(int rounds, double seconds_per_round = seconds_of_round) {
        for (int round = 0; round < rounds; ++round) {
            now_ += seconds_per_round;
            bool alive = false;
            for (auto& worker : workers_) {
                if (worker->exit_reason() == ExitReason::urgent || worker.get() == stopped) {
                    continue;
                }
                alive = worker->step() || alive;
            }
            if (!alive) {
                return true;
            }
        }
        return false;
    }

    /// Adds a record that a worker of an earlier start could have written.
    void add(const search::Record& record) { journals_[0].push_back(search::encode(record, 7)); }

    /// Returns the number of individuals that the last start bred.
    [[nodiscard]] std::size_t bred_in_last_start() const {
        std::size_t count = 0;
        const search::Population all = recorded();
        for (const auto& [id, individual] : all.individuals()) {
            count += id.restart() + 1 == restart_ ? 1 : 0;
        }
        return count;
    }

    /// Returns the number of messages of one kind that leaders sent to other leaders in the last start.
    [[nodiscard]] std::size_t messages_to_others(std::size_t kind) const {
        std::size_t count = 0;
        for (const auto& mailbox : mailboxes_) {
            const auto sent = mailbox->sent.find(kind);
            count += sent != mailbox->sent.end() ? sent->second : 0;
        }
        return count;
    }

    /// Returns the number of records of one kind in the journals.
    [[nodiscard]] std::size_t journaled(std::size_t kind) const {
        std::size_t count = 0;
        for (const auto& journal : journals_) {
            for (const Bytes& record : journal) {
                search::RecordReader reader(record, 7, "journal");
                count += reader.next()->index() == kind ? 1 : 0;
            }
        }
        return count;
    }

    /// Returns the merged records of all journals.
    [[nodiscard]] search::Population recorded() const {
        search::Population population(kind_, islands_, costs);
        for (const auto& journal : journals_) {
            for (const Bytes& record : journal) {
                search::RecordReader reader(record, 7, "journal");
                population.merge(*reader.next());
            }
        }
        return population;
    }

    void set_space(search::Space space) { space_ = std::move(space); }

    StopRequest stop = StopRequest::none;
    search::InitialDesign initial_design;
    search::Duplicates duplicates = search::Duplicates::breed;
    const search::OtherResults* other_results = nullptr;
    search::ExchangeOptions exchange;  ///< the constructor's `kind` replaces exchange.kind
    std::uint64_t seed = 1;
    double now_ = 1;
    int slots = 1;
    std::size_t epochs = 0;
    std::function<double(const search::Individual&, std::size_t epoch)> loss_after;
    search::PruningOptions pruning;
    bool one_at_a_time = false;
    int nodes = 1;
    double hours_before = 0;
    double node_hours_before = 0;
    std::vector<std::string> node_of_worker;  ///< empty: all are on one node
    double training_seconds = 60;
    double end_time = 0;
    double new_end_time = 0;
    double checkpoint_seconds = 0;
    std::vector<int> looks;  ///< per worker: the number of steps of each evaluation; empty: random
    Budget budget_;
    std::optional<search::FinalChoice> final_choice;
    double noise = 0;
    std::vector<search::Cost> costs;
    double timeout_seconds = 0;
    search::PropagatorOptions propagator = search::GeneticOptions{8};
    std::vector<search::PropagatorOptions> of_islands;  ///< if empty, all islands use `propagator`
    const Worker* stopped = nullptr;                    ///< this worker makes no steps, like a process after SIGSTOP
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::unique_ptr<SteppedEvaluator>> evaluators_;
    std::vector<std::unique_ptr<CountingMailbox>> mailboxes_;
    std::vector<std::unique_ptr<MemoryJournal>> files_;
    std::unique_ptr<MemoryArchive> archive_;
    std::function<bool(const search::Genome&)> exists = [](const search::Genome&) { return true; };
    std::function<bool(const search::Individual&)> fails = [](const search::Individual&) { return false; };
    search::Outcome failure = search::Outcome::failed;
    int retries = 0;
    std::optional<std::int64_t> give_up_after;
    SilentObserver observer_;

private:
    void start(int count) {
        search::Population population = recorded();
        workers_.clear();
        evaluators_.clear();
        mailboxes_.clear();
        files_.clear();
        network_ =
            std::make_unique<simulate::Network>(count, seconds_of_round * (delay_ + 0.5), [this] { return now_; });
        std::vector<int> island_of_worker;
        for (int worker = 0; worker < count; ++worker) {
            island_of_worker.push_back(worker % islands_);
        }
        island_map_ = std::make_unique<IslandMap>(std::move(island_of_worker), islands_);
        archive_ = std::make_unique<MemoryArchive>();
        propagators_.clear();
        for (int i = 0; i < count; ++i) {
            WorkerOptions options;
            options.run = 7;
            options.restart = restart_;
            options.self = i;
            options.islands = island_map_.get();
            options.earlier = earlier_;
            options.one_at_a_time = one_at_a_time;
            options.nodes = node_of_worker.empty() ? nodes : count;
            options.node = node_of_worker.empty() ? "n1" : node_of_worker.at(static_cast<std::size_t>(i));
            options.hours_before = hours_before;
            options.node_hours_before = node_hours_before;
            options.training_seconds = training_seconds;
            options.budget = budget_;
            options.final_choice = final_choice;
            options.exchange = exchange;
            options.exchange.kind = kind_;
            options.seed = seed;
            options.initial_design = initial_design;
            options.duplicates = duplicates;
            options.other_results = other_results;
            options.retries = retries;
            options.give_up_after = give_up_after;
            options.initial_points_left = initial_points_left(population, earlier_, initial_design.initial_points());
            options.timeout_seconds = timeout_seconds;
            options.leader_names = {"rank 0 on n1", "rank 1 on n1", "rank 2 on n2"};
            const auto& breeds = of_islands.empty() ? propagator : of_islands[static_cast<std::size_t>(i % islands_)];
            propagators_.push_back(search::make_propagator(breeds, space_, 1));
            evaluators_.push_back(std::make_unique<SteppedEvaluator>(slots, 5 + 7 * i));
            evaluators_.back()->exists = exists;
            evaluators_.back()->fails = fails;
            evaluators_.back()->now = node_of_worker.empty() ? nullptr : &now_;
            evaluators_.back()->failure = failure;
            evaluators_.back()->epochs = epochs;
            evaluators_.back()->noise = noise;
            evaluators_.back()->loss_after = loss_after;
            evaluators_.back()->pruning = pruning;
            evaluators_.back()->seconds_of_checkpoint = checkpoint_seconds;
            evaluators_.back()->looks = looks.empty() ? 0 : looks[static_cast<std::size_t>(i)];
            mailboxes_.push_back(std::make_unique<CountingMailbox>(network_->mailbox(i)));
            files_.push_back(std::make_unique<MemoryJournal>(journals_[static_cast<std::size_t>(i)]));
            workers_.push_back(std::make_unique<Worker>(options, population, *propagators_.back(), *evaluators_.back(),
                                                        *files_.back(), *mailboxes_.back(),
                                                        i == 0 ? archive_.get() : nullptr, observer_,
                                                        Hooks{.unix_seconds = [this] { return now_; },
                                                              .steady_seconds = [this] { return now_; },
                                                              .stop = [this] { return stop; },
                                                              .end_time = end_time,
                                                              .new_end_time = [this] { return new_end_time; }}));
        }
        earlier_.push_back({restart_++, count});
    }

    search::Space space_ = plane();
    search::ExchangeKind kind_;
    int islands_;
    int delay_;
    std::uint32_t restart_ = 0;
    std::vector<EarlierStart> earlier_;
    std::vector<std::vector<Bytes>> journals_;
    std::unique_ptr<simulate::Network> network_;
    std::unique_ptr<IslandMap> island_map_;
    std::vector<std::unique_ptr<search::Propagator>> propagators_;  ///< one per worker
};

inline Budget evaluations(std::int64_t count) {
    Budget budget;
    budget.evaluations = count;
    return budget;
}

inline constexpr int plenty = 1000000;

}  // namespace finch::island
