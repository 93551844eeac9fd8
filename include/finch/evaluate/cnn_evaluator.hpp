#pragma once

#include "finch/evaluate/group_evaluator.hpp"
#include "finch/evaluate/parent_weights.hpp"
#include "finch/evaluate/rung_snapshots.hpp"
#include "finch/evaluate/slots.hpp"
#include "finch/search/population.hpp"
#include "finch/store/model_file.hpp"
#include "finch/store/run_directory.hpp"
#include "finch/store/snapshot.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace finch::evaluate {

/// An evaluator that trains networks, data-parallel over the worker's ranks. Leader only.
class CnnEvaluator : public GroupEvaluator {
public:
    /// `best_known` returns the best individual that this leader knows, if any. The leader writes an individual's
    /// weights to disk only if the individual is better than `best_known`. A leader knows its own results, so the
    /// worker that trained the run's best individual always keeps its weights. The weights of repeats are always kept.
    CnnEvaluator(const config::Config& config, Slots& slots, const comm::Group& group, store::RunDirectory directory,
                 int worker, std::uint64_t run, std::function<std::optional<search::Standing>()> best_known);

    [[nodiscard]] bool has_free_slot() const override;
    [[nodiscard]] bool idle() const override;
    [[nodiscard]] bool can_exist(const search::Genome& genome) const override;
    [[nodiscard]] bool can_continue(const search::Individual& heir) const override;
    [[nodiscard]] bool wants_soon() const override;
    void start(search::Individual individual) override;
    [[nodiscard]] std::vector<search::Individual> advance() override;
    void finished(const search::Individual& individual) override;
    [[nodiscard]] std::vector<search::Individual> checkpoint() override;
    [[nodiscard]] double checkpoint_seconds() const override { return checkpoint_seconds_; }
    [[nodiscard]] bool next_may_be_long() const override;

    /// Sets the shape of a sample and the number of classes; can_exist() needs both.
    void set_sample_shape(nn::SampleShape sample, std::int64_t classes);
    /// Sets the function that returns the leader's population. search.pruning compares trainings with individuals of
    /// this population; without a population, nothing is pruned.
    void set_population(std::function<const search::Population&()> population) { population_ = std::move(population); }

private:
    struct Running : Evaluation {
        double seconds_per_step = 0;  ///< 0: not measured yet
        double seconds_left = 0;      ///< estimated; 0: unknown
        double progress = 0;
        double training_seconds = 0;       ///< in this start, by the device's clock
        std::int64_t steps_done = 0;       ///< in this start
        double joules_before = 0;          ///< in earlier starts
        std::int64_t batches_to_line = 0;  ///< most batches until the next line of `log.batches`; 0: not known
        train::EpochSoFar logged = {};     ///< at the last line of `log.batches`
        double seconds_logged = 0;         ///< training_seconds at that line
    };

    using GroupEvaluator::evaluation;
    [[nodiscard]] std::uint32_t slots() const override { return static_cast<std::uint32_t>(running_.size()); }
    [[nodiscard]] const Evaluation& evaluation(std::uint32_t slot) const override { return running_[slot]; }
    void obey(const Order& order) override { status_ = slots_.obey(order).front(); }
    /// Sends an Order for one slot to the group, obeys it, and returns the status.
    Status command_one(const Order& order);
    [[nodiscard]] std::optional<store::ModelFile> saved_training(const search::Individual& individual);
    [[nodiscard]] std::optional<store::ModelFile> find_beginning(search::Individual& individual, Order& order);
    [[nodiscard]] std::optional<store::ModelFile> parents_training(const search::Individual& heir) const;
    void set_pruner(std::uint32_t slot);
    void describe_costs(std::uint32_t slot, std::span<const Epoch> curve);
    void keep_at_rung(std::uint32_t slot);
    [[nodiscard]] store::ModelFile take_snapshot(std::uint32_t slot);
    bool save(std::uint32_t slot);
    [[nodiscard]] search::Individual ended(std::uint32_t slot, Status status);
    void describe(search::Individual& individual, train::Training& training, search::Outcome outcome) const;
    void keep_best(const search::Individual& individual, train::Training& training);
    void keep_for_children(const search::Individual& individual, const train::Training& training);
    /// Returns the leader's population; null if set_population() was not called.
    [[nodiscard]] const search::Population* known_population() const { return population_ ? &population_() : nullptr; }
    [[nodiscard]] NamedArrays inherited_weights(const search::Individual& individual) const;
    [[nodiscard]] std::vector<std::uint32_t> used_slots() const;
    [[nodiscard]] std::uint32_t steps_wanted(const Running& running) const;
    void measure(std::uint32_t slot);
    void log_batches(std::uint32_t slot);
    void release(std::uint32_t slot);

    Slots& slots_;
    store::RunDirectory directory_;
    int worker_;
    std::uint64_t run_;  ///< the run's number; files of other runs are ignored
    std::function<std::optional<search::Standing>()> best_known_;
    std::function<const search::Population&()> population_;
    ParentWeights parent_weights_;
    RungSnapshots rung_snapshots_;
    std::optional<search::Standing> kept_;  ///< best individual with weights kept in this start; maybe not recorded yet
    nn::SampleShape sample_;
    std::int64_t classes_ = 0;
    std::map<search::Id, store::Snapshot> snapshots_;  ///< of the individuals that started and are not recorded yet
    std::vector<Running> running_;
    std::vector<search::Individual> failed_;  ///< individuals that could not start; advance() returns them
    /// An individual that ran out of memory while others trained. The individual starts once another training has
    /// ended.
    std::optional<search::Individual> waiting_;
    bool has_room_ = false;  ///< a slot was released since the last attempt to start `waiting_`
    double checkpoint_seconds_ = 0;
    Status status_ = Status::running;  ///< of the last Order
};

}  // namespace finch::evaluate
