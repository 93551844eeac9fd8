#pragma once

#include "finch/backend/device.hpp"
#include "finch/base/named_array.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/data/dataset.hpp"
#include "finch/nn/optimizer.hpp"
#include "finch/nn/schedule.hpp"
#include "finch/nn/spec.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace finch::train {

enum class ScaleLearningRate { none, sqrt, linear };
enum class Precision { float32, tf32, bfloat16, float16 };

/// What `training:` says, every gene already replaced by its value.
struct Options {
    std::int64_t epochs = 10;
    std::int64_t batch_size = 64;  ///< global; used where batch_size_per_rank is nothing
    std::optional<std::int64_t> batch_size_per_rank;
    ScaleLearningRate scale_learning_rate = ScaleLearningRate::none;  ///< by the number of ranks
    nn::OptimizerOptions optimizer = nn::AdadeltaOptions{};
    double learning_rate = 1.0;
    nn::Schedule schedule = nn::ConstantSchedule{};
    std::optional<std::int64_t> patience;  ///< epochs without improvement before it stops early; nothing: never
    Precision precision = Precision::float32;
    bool deterministic = true;
};

/// What an individual's training is a function of, beside the data.
struct Recipe {
    std::uint64_t seed = 1;
    std::uint64_t individual = 0;  ///< its id's value
    Options training;
    data::Options data;
    nn::ModelSpec model;
};

/// What one epoch gave. The same on every rank.
struct Epoch {
    std::int64_t epoch = 0;  ///< 1 is the first
    double training_loss = 0;
    double training_accuracy = 0;
    double validation_loss = 0;
    double validation_accuracy = 0;
    double learning_rate = 0;
    double seconds = 0;  ///< the leader's clock
};

enum class State { running, finished, diverged };

/// One individual's training on this rank, an object that is advanced. Every method but the accessors is collective
/// over the worker, and all ranks call them in the same order with the same arguments.
class Training {
public:
    /// Plans and allocates everything. Throws ConfigError (the network cannot exist) and std::bad_alloc. Local: not
    /// collective, so that a rank that fails can be heard.
    Training(backend::Device& device, const comm::Group& group, comm::AllReduce& all_reduce,
             const data::Datasets& datasets, Recipe recipe, double timeout_seconds);
    ~Training();
    Training(const Training&) = delete;
    Training& operator=(const Training&) = delete;

    /// Collective over the worker. Does up to `steps` batches (of training or of validation) and returns. The end of an
    /// epoch is part of its last validation batch: sums are reduced, the leader decides (improved, patience, NaN), all
    /// obey.
    State advance(std::int64_t steps);

    /// Local. Whether this rank met a failure in a step: its loss is not finite. The caller tells the group.
    [[nodiscard]] State state() const noexcept;
    /// The epochs that ended so far, first first.
    [[nodiscard]] const std::vector<Epoch>& curve() const noexcept;
    /// The epoch with the smallest validation loss, 1 is the first; 0: none yet.
    [[nodiscard]] std::int64_t best_epoch() const noexcept;
    [[nodiscard]] std::int64_t global_batch() const noexcept;
    [[nodiscard]] std::int64_t samples_trained() const noexcept;  ///< of the whole group
    [[nodiscard]] const nn::ModelPlan& plan() const noexcept;
    /// Batches done and in all, of all epochs, validation included: for progress.
    [[nodiscard]] double progress() const noexcept;

    /// Collective over the worker. Everything that is needed to go on, on any number of ranks: weights, optimizer, the
    /// best epoch's weights, position, partial sums per rank, patience, curve. The same arrays on every rank.
    [[nodiscard]] NamedArrays snapshot() const;
    /// Local. Goes on from a snapshot: to the same bits where the number of ranks is the same. Throws FileError where
    /// it does not fit the recipe.
    void restore(const NamedArrays& snapshot);

    /// Local. The weights of the best epoch under PyTorch's names.
    [[nodiscard]] NamedArrays best_weights() const;

    /// Collective over the worker. Loss and accuracy of the best epoch's weights on a data set, each sample counted
    /// once.
    struct Measured {
        double loss = 0;
        double accuracy = 0;
        std::vector<std::int32_t> predictions;  ///< by sample, on every rank
    };
    [[nodiscard]] Measured measure(const data::Dataset& dataset);

private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

/// Collective over the worker. One evaluation of `weights` (PyTorch's names) on the samples `indices` of `dataset`;
/// loss and accuracy count every sample once, whatever the number of ranks.

}  // namespace finch::train
