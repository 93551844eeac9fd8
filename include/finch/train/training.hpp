#pragma once

#include "finch/backend/device.hpp"
#include "finch/backend/optimizer.hpp"
#include "finch/base/epoch.hpp"
#include "finch/base/named_array.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/data/dataset.hpp"
#include "finch/nn/plan.hpp"
#include "finch/nn/schedule.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace finch::train {

enum class ScaleLearningRate { none, sqrt, linear };
constexpr std::array<std::string_view, 3> words_of(ScaleLearningRate) {
    return {"none", "sqrt", "linear"};
}
using Precision = backend::Precision;

/// What `training:` says, every gene already replaced by its value.
struct Options {
    std::int64_t epochs = 10;
    std::int64_t batch_size = 64;  ///< global; used where batch_size_per_rank is nothing
    std::optional<std::int64_t> batch_size_per_rank = {};
    /// By the number of ranks that it starts on; used where batch_size_per_rank is given.
    ScaleLearningRate scale_learning_rate = ScaleLearningRate::none;
    backend::Optimizer optimizer = backend::Adadelta{};
    double learning_rate = 1.0;
    nn::Schedule schedule = nn::ConstantSchedule{};
    std::optional<std::int64_t> patience = {};  ///< epochs without improvement before it stops early; nothing: never
    Precision precision = Precision::float32;
    bool deterministic = true;
};

/// What a training minimises. It decides which epoch is the best one, whose weights are kept, and what early stopping
/// waits for.
enum class Objective { validation_loss, validation_error };
constexpr std::array<std::string_view, 2> words_of(Objective) {
    return {"validation_loss", "validation_error"};
}

/// What an individual's training is a function of, beside the data.
struct Recipe {
    std::uint64_t seed = 1;
    std::uint64_t individual = 0;  ///< its id's value
    Objective objective = Objective::validation_loss;
    Options training;
    data::Options data;
    nn::ModelSpec model;
};

/// What `epoch` gave, as the objective sees it: smaller is better.
[[nodiscard]] double objective_value(Objective objective, const Epoch& epoch) noexcept;

enum class State { running, finished, diverged };

/// Loss and accuracy of given weights on a data set.
struct Measured {
    double loss = 0;
    double accuracy = 0;
    std::int64_t samples = 0;               ///< how many were counted: each once
    std::vector<std::int32_t> predictions;  ///< by sample, on every rank
};

/// What a training that is to begin must know of the host's memory besides how much is free.
struct HostMemory {
    std::int64_t reserved = 0;   ///< bytes that another training may need for its snapshot
    std::int64_t returning = 0;  ///< bytes that the caller holds until the training stands
};

/// One individual's training on this rank, an object that is advanced. Every method but the accessors is collective
/// over the worker, and all ranks call them in the same order with the same arguments.
class Training {
public:
    using Measured = train::Measured;

    /// Plans and allocates everything; `device`, `group`, `all_reduce` and `datasets` must outlive it. Throws
    /// ConfigError (the network cannot exist, there is nothing to validate on, the device has not that precision) and
    /// std::bad_alloc, at once where the device has less free memory than plan().bytes, and room for a snapshot where
    /// that is the host's. Local: not collective, so that a rank that fails can be heard.
    Training(backend::Device& device, const comm::Group& group, comm::AllReduce& all_reduce,
             const data::Datasets& datasets, Recipe recipe, HostMemory memory = {});
    ~Training();
    Training(const Training&) = delete;
    Training& operator=(const Training&) = delete;

    /// Collective over the worker. Does up to `steps` batches (of training or of validation) and returns state(). Where
    /// the device runs ahead, it first takes in what the call before asked for, and returns with the new batches still
    /// to be done: so a GPU has work while the host looks elsewhere. The end of an epoch follows its last validation
    /// batch: sums are reduced, the leader decides (improved, patience, NaN), all obey, so at that moment all ranks
    /// return the same. Between two epochs' ends only this rank's own loss
    /// is known, and ranks may differ by `diverged`: the caller takes the largest over the group before it acts on it.
    /// How the batches are cut into calls does not change a bit. What a batch's computation throws on this rank is
    /// thrown at the end of the call: until then its collectives run with zeros and its losses are NaN, so the others
    /// are not left waiting and nobody takes the result for good.
    State advance(std::int64_t steps);

    /// Local. `diverged` as soon as this rank has met a loss that is not finite.
    [[nodiscard]] State state() const noexcept;
    /// The epochs that ended so far, first first.
    [[nodiscard]] const std::vector<Epoch>& curve() const noexcept;
    /// The epoch with the smallest value of the objective, the first of equal ones, 1 is the first; 0: none yet.
    [[nodiscard]] std::int64_t best_epoch() const noexcept;
    /// Samples of one optimizer step over the whole group. Fixed at the start, whatever the number of ranks is later.
    [[nodiscard]] std::int64_t global_batch() const noexcept;
    /// Of the whole group.
    [[nodiscard]] std::int64_t samples_trained() const noexcept;
    [[nodiscard]] const nn::ModelPlan& plan() const noexcept;
    /// The share of all epochs' samples, those of validation included, that is done: 0 to 1. 1 once it has ended.
    [[nodiscard]] double progress() const noexcept;
    /// Batches that are done and taken in, and the seconds that they took by the device's clock, since this object was
    /// made.
    [[nodiscard]] std::int64_t steps_done() const noexcept;
    [[nodiscard]] double step_seconds() const noexcept;
    /// The seconds of all batches so far, those before a restore() included, by the leader's
    /// device. Leader only.
    [[nodiscard]] double training_seconds() const noexcept;

    /// Collective over the worker. Takes in what is under way; then everything that is needed to go on, on any number
    /// of ranks: weights, optimizer, the best epoch's weights, position, partial sums per rank, patience, curve. The
    /// same arrays on every rank.
    [[nodiscard]] NamedArrays snapshot();
    /// Local. Goes on from a snapshot: to the same bits where the number of ranks is the same, else at the same global
    /// batch and learning rate. Throws FileError where it does not fit the recipe or keeps the weights of another epoch
    /// than the objective's best, and std::bad_alloc, after which it can only be destroyed.
    void restore(const NamedArrays& snapshot);

    /// Local. The weights of the best epoch under PyTorch's names; before the first epoch's end the present ones.
    [[nodiscard]] NamedArrays best_weights() const;

    /// Collective over the worker. Loss and accuracy of best_weights() on a data set. Throws ConfigError where its
    /// shape is not the model's.
    [[nodiscard]] Measured measure(const data::Dataset& dataset);

private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

/// Collective over the worker. Loss and accuracy of `weights` (PyTorch's names) on a data set, for a model without a
/// training: each sample counts once, whatever the number of ranks. `batch` samples per rank at once. Throws
/// ConfigError (the network cannot exist) and FileError (the weights are not this model's).
[[nodiscard]] Measured measure(backend::Device& device, const comm::Group& group, const nn::ModelSpec& model,
                               const NamedArrays& weights, const data::Options& normalisation,
                               const data::Dataset& dataset, std::int64_t batch);

}  // namespace finch::train
