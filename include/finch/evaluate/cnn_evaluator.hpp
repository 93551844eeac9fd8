#pragma once

#include "finch/backend/device.hpp"
#include "finch/cluster/device_map.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/data/dataset.hpp"
#include "finch/evaluate/group_evaluator.hpp"
#include "finch/evaluate/kept_files.hpp"
#include "finch/store/model_file.hpp"
#include "finch/store/run_directory.hpp"
#include "finch/store/snapshot.hpp"
#include "finch/train/training.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace finch::evaluate {

/// The run to which a worker's evaluations belong.
struct WorkerRun {
    store::RunDirectory directory;
    std::uint64_t number = 0;  ///< files of other runs are ignored
    int worker = 0;
};

/// Trains networks, data-parallel over the worker's ranks: one training per slot, each with its own stream of the
/// device. The trainings are in cnn_evaluator.cpp, their files in cnn_evaluator_files.cpp.
class CnnEvaluator : public GroupEvaluator {
public:
    /// Collective over the worker. All references and pointers must outlive the evaluator.
    CnnEvaluator(const config::Config& config, const comm::Group& group, const data::Datasets& datasets,
                 backend::Device& device, cluster::AllReduceKind communicator, WorkerRun run,
                 energy::Meter* meter = nullptr, std::optional<train::Profile> profile = std::nullopt);
    /// During stack unwinding, calls AllReduce::give_up(): the destructors of trainings wait for the device, and the
    /// device may wait for a peer.
    ~CnnEvaluator() override;

    [[nodiscard]] bool can_exist(const search::Genome& genome) const override;
    [[nodiscard]] bool can_continue(const search::Individual& heir,
                                    const search::Population& population) const override;
    [[nodiscard]] std::vector<search::Individual> advance(const search::Population& population) override;
    void finished(const search::Individual& individual, const search::Population& population) override;
    [[nodiscard]] std::vector<search::Individual> checkpoint() override;
    [[nodiscard]] double checkpoint_seconds() const override { return checkpoint_seconds_; }
    [[nodiscard]] bool next_may_be_long() const override;

    /// Returns the training in `slot` of this rank.
    [[nodiscard]] const train::Training& training(std::uint32_t slot) const { return *networks_.at(slot).training; }

private:
    struct Network {
        std::unique_ptr<train::Training> training{};  ///< on every rank; the other members on the leader
        double seconds_per_step = 0;                  ///< 0: not measured yet
        double seconds_left = 0;                      ///< estimated; 0: unknown
        double progress = 0;
        double seconds = 0;                ///< in this start, by the device's clock
        std::int64_t steps_done = 0;       ///< in this start
        std::int64_t batches_to_line = 0;  ///< most batches until the next line of `log.batches`; 0: not known
        train::EpochSoFar logged = {};     ///< at the last line of `log.batches`
        double seconds_logged = 0;         ///< `seconds` at that line
    };

    // Every rank.
    Answer on_start(const Order& order) override;
    Answer on_advance(const Order& order) override;
    void on_release(const Order& order) override { networks_.at(order.slot) = {}; }
    void on_snapshot(const Order& order) override;
    [[nodiscard]] double worked(std::uint32_t slot) const override { return training(slot).step_seconds(); }
    template <class Work>
    [[nodiscard]] std::pair<Status, std::string> attempt(Work&& work) const;
    void check_health(std::uint32_t slot);
    /// Returns the bytes that the largest snapshot of the trainings may take.
    [[nodiscard]] std::int64_t largest_snapshot() const;
    void launch_waiting_steps();

    // The leader.
    void prepare(search::Individual& individual, Order& order, const search::Population& population) override;
    void begun(const Order& order) override;
    std::optional<search::Individual> poll(std::uint32_t slot, const search::Population& population) override;
    [[nodiscard]] std::vector<std::uint32_t> used_slots() const override;
    [[nodiscard]] double seconds_left(std::uint32_t slot) const override;
    void set_pruner(std::uint32_t slot, const search::Population& population);
    void describe_costs(std::uint32_t slot, std::span<const Epoch> curve);
    [[nodiscard]] std::uint32_t steps_wanted(const Network& network) const;
    void measure(std::uint32_t slot);
    void log_batches(std::uint32_t slot);
    void describe(search::Individual& individual, const train::Training& training, Status status) const;
    [[nodiscard]] search::Individual end(std::uint32_t slot, Status status, const search::Population& population);
    [[nodiscard]] search::Individual release(std::uint32_t slot);

    // The leader's files: cnn_evaluator_files.cpp.
    [[nodiscard]] std::optional<store::ModelFile> saved_training(const search::Individual& individual);
    [[nodiscard]] std::optional<store::ModelFile> parents_training(const search::Individual& heir) const;
    [[nodiscard]] NamedArrays inherited_weights(const search::Individual& individual,
                                                const search::Population& population) const;
    void keep_at_rung(std::uint32_t slot, const search::Population& population);
    [[nodiscard]] store::ModelFile take_snapshot(std::uint32_t slot);
    bool save(std::uint32_t slot);
    /// Writes the weights of a training that is better than the best individual of `population`. A leader knows its
    /// own results, so the worker that trained the run's best individual always keeps its weights. The weights of
    /// repeats are always kept.
    void keep_best(const search::Individual& individual, const train::Training& training,
                   const search::Population& population);
    void keep_for_children(const search::Individual& individual, const train::Training& training);

    const data::Datasets& datasets_;
    WorkerRun run_;
    nn::SampleShape sample_;
    std::int64_t classes_;
    int exceptions_;                                         ///< uncaught exceptions at construction
    std::vector<std::unique_ptr<backend::Device>> streams_;  ///< by slot
    std::unique_ptr<comm::AllReduce> all_reduce_;
    std::vector<Network> networks_;  ///< by slot
    NamedArrays snapshot_;           ///< of the last `snapshot` Order
    ParentWeights parent_weights_;
    RungSnapshots rung_snapshots_;
    std::optional<search::Standing> kept_;  ///< best individual with weights kept in this start; maybe not recorded yet
    std::map<search::Id, store::Snapshot> snapshots_;  ///< of the individuals that started and are not recorded yet
    double checkpoint_seconds_ = 0;
};

}  // namespace finch::evaluate
