#pragma once

#include "finch/backend/device.hpp"
#include "finch/base/epoch.hpp"
#include "finch/base/named_array.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/data/sampling.hpp"
#include "finch/nn/model.hpp"
#include "finch/train/early_stopping.hpp"
#include "finch/train/profile.hpp"
#include "finch/train/recipe.hpp"

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace finch::train {

class Learner;
struct StepPlan;

/// Value of `epoch` for the objective: smaller is better.
[[nodiscard]] double objective_value(Objective objective, const Epoch& epoch) noexcept;

/// `pruned`: ended before its last epoch, as its Pruner said.
enum class State { running, finished, diverged, pruned };

/// Whether a training ends now: the epochs so far, and how many it is to have.
using Pruner = std::function<bool(std::span<const Epoch> curve, std::int64_t epochs)>;

/// Results of given weights on samples, which all count alike; the same on every rank.
struct Measured {
    double loss = 0;
    double accuracy = 0;                      ///< not a number where there are targets in place of labels
    std::int64_t samples = 0;                 ///< how many were counted: each once
    std::vector<std::int32_t> predictions{};  ///< by sample: the class with the largest logit, the first of equal ones
    std::vector<std::int32_t> places{};       ///< by sample: that of its own class by the logits; 0: it has the largest
    std::vector<float>
        scores{};  ///< (samples, outputs): softmax, or what is predicted of targets; none if more than most_scores
};
inline constexpr std::int64_t most_scores = std::int64_t{1} << 26;

/// Throws ConfigError if `device` cannot compute so. `processor`: whose lack it is, for the message.
void check_precision(Precision precision, const backend::Device& device,
                     const std::string& processor = "this processor");

/// Host memory that a new training must account for, besides the free memory.
struct HostMemory {
    std::int64_t reserved = 0;   ///< bytes that another training may need for its snapshot
    std::int64_t returning = 0;  ///< bytes that the caller frees once the training is made
};

/// One individual's training on this rank, an object that is advanced: steps in training.cpp, the group's decision at
/// an epoch's end in epoch_end.cpp, files in snapshot.cpp. All ranks of the worker call the collective methods in the
/// same order with the same arguments.
class Training {
public:
    /// Plans and allocates everything; `device`, `group`, `all_reduce`, `datasets` and `profile` (the same on every
    /// rank, or null on every rank) must outlive it. Throws ConfigError (the network cannot exist, there is nothing to
    /// validate on, the device has not that precision) and std::bad_alloc, at once if the device has less free memory
    /// than plan().bytes, and room for a snapshot if that is the host's. Local: not collective, so that a rank that
    /// fails can be heard.
    Training(backend::Device& device, const comm::Group& group, comm::AllReduce& all_reduce,
             const data::Datasets& datasets, Recipe recipe, HostMemory memory = {}, Profile* profile = nullptr);
    ~Training();
    Training(const Training&) = delete;
    Training& operator=(const Training&) = delete;

    /// Local, before the first step. Begins with these weights (PyTorch's names), which are also the first that an
    /// average takes up. Throws FileError if they are not this model's.
    void begin_with(const NamedArrays& weights);
    /// Leader only. `pruner` is asked after each epoch that would not be the last one.
    void set_pruner(Pruner pruner) { pruner_ = std::move(pruner); }

    /// Collective over the worker. Does up to `steps` batches, of training or of validation, and returns state().
    /// - On a device that runs ahead it synchronizes the last call's batches and returns with its own under way.
    /// - An epoch's end follows its last validation batch: sums are reduced, the leader decides, all return the same.
    /// - Between epochs' ends a rank knows its own loss alone: the caller takes the largest state over the group.
    /// - How the batches are cut into calls does not change a bit.
    /// - Throws at its end what a batch threw on this rank, whose collectives went on with zeros and NaN losses.
    State advance(std::int64_t steps);

    /// Local. `diverged` as soon as this rank has met a loss that is not finite, or gradients that overflow at the
    /// least scale of the loss.
    [[nodiscard]] State state() const noexcept;
    /// The epochs that ended so far, oldest first.
    [[nodiscard]] const std::vector<Epoch>& curve() const noexcept { return curve_; }
    /// The epoch with the smallest value of the objective, the first of equal ones, 1 is the first; 0: none yet.
    [[nodiscard]] std::int64_t best_epoch() const noexcept { return stopping_.best_epoch; }
    /// Samples of one optimizer step over the whole group. Fixed at the start, whatever the number of ranks is later.
    [[nodiscard]] std::int64_t global_batch() const noexcept { return global_batch_; }
    /// How the loss is scaled, and how many steps were skipped; nothing if the precision needs no scale.
    [[nodiscard]] const std::optional<backend::LossScale>& loss_scale() const noexcept { return loss_scale_; }
    /// Samples trained by the whole group.
    [[nodiscard]] std::int64_t samples_trained() const noexcept;
    [[nodiscard]] const nn::ModelPlan& plan() const noexcept;
    /// The share of all epochs' samples, those of validation included, that is done: 0 to 1. 1 once it has ended.
    [[nodiscard]] double progress() const noexcept;
    /// Batches that are synchronized, and the seconds that they took by the device's clock, since this object was made.
    [[nodiscard]] std::int64_t steps_done() const noexcept { return steps_done_; }
    [[nodiscard]] double step_seconds() const noexcept { return step_seconds_; }
    /// Leader only. The seconds of all batches so far, those before a restore() included, by the leader's device.
    [[nodiscard]] double training_seconds() const noexcept { return seconds_before_ + step_seconds_; }

    /// Collective over the worker. Synchronizes; then everything that is needed to resume, on any number of ranks:
    /// weights and their average, optimizer, scale of the loss, the best epoch's weights, position, partial sums per
    /// rank, patience, curve. The same arrays on every rank.
    [[nodiscard]] NamedArrays snapshot();
    /// Local. Goes on from a snapshot: to the same bits if the number of ranks is the same, else at the same global
    /// batch and learning rate. Throws FileError if it does not fit the recipe or keeps the weights of another epoch
    /// than the objective's best, and std::bad_alloc, after which it can only be destroyed.
    void restore(const NamedArrays& snapshot);

    /// Local. The weights of the best epoch under PyTorch's names; before the first epoch's end the present ones. With
    /// Options::average these are averages, as everything is that is validated.
    [[nodiscard]] NamedArrays best_weights() const;

    /// Collective over the worker. Loss and accuracy of best_weights() on a data set. Throws ConfigError if its shape
    /// is not the model's.
    [[nodiscard]] Measured measure(const data::Dataset& dataset);

private:
    /// Part of an epoch that the next batch belongs to.
    enum class Phase : std::int64_t { training = 0, validation = 1 };

    /// Position in the training, counted in samples of the whole group, so that it means the same on any number of
    /// ranks.
    struct Position {
        std::int64_t epoch = 0;  ///< 0 is the first
        Phase phase = Phase::training;
        std::int64_t sample = 0;  ///< of the phase
    };

    /// Sums of this rank in an unfinished epoch.
    struct PartialSums {
        backend::LossSums training;
        backend::LossSums validation;
        double seconds = 0;
    };

    /// A snapshot's average of weights.
    struct Average {
        nn::ModelState state = {};
        std::int64_t taken = 0;  ///< weights that it is of; 0: it has not begun
    };

    struct EpochDecision;

    [[nodiscard]] std::unique_ptr<Learner> make_learner(std::int64_t global_batch) const;
    void check_memory(const nn::ModelPlan& plan) const;
    [[nodiscard]] std::int64_t training_samples() const noexcept { return std::ssize(split_.training); }
    [[nodiscard]] std::int64_t validation_samples() const noexcept { return std::ssize(split_.validation); }
    [[nodiscard]] double batch_weight(std::int64_t end) const;
    [[nodiscard]] double epoch_weight();
    [[nodiscard]] std::vector<data::Share> parts_of_batch(std::int64_t begin, std::int64_t end) const;
    void add_training_images(const data::Share& share, std::vector<std::int64_t>& indices) const;
    void add_validation_images(std::int64_t begin, std::vector<std::int64_t>& indices) const;
    void announce_training();
    void announce_validation();
    /// Learning rate of the step with `sample` of the present epoch.
    [[nodiscard]] double learning_rate(std::int64_t sample) const;
    std::int64_t ask_for_training(std::int64_t steps);
    std::int64_t ask_for_validation(std::int64_t steps);
    void finish_steps();
    void shuffle_epoch();

    void end_epoch();
    void agree_on_epoch();
    [[nodiscard]] EpochDecision judge(std::span<const double> losses, std::span<const std::int64_t> counts);
    [[nodiscard]] bool is_pruned_after(const Epoch& epoch) const;
    void obey(const EpochDecision& decision);

    void check_identity(const NamedArrays& snapshot) const;
    [[nodiscard]] Position read_position(const NamedArrays& snapshot) const;
    [[nodiscard]] PartialSums read_partial_sums(const NamedArrays& snapshot) const;
    [[nodiscard]] std::optional<Average> read_average(const NamedArrays& snapshot) const;
    [[nodiscard]] std::optional<backend::LossScale> read_loss_scale(const NamedArrays& snapshot) const;
    [[nodiscard]] std::vector<Epoch> read_curve(const NamedArrays& snapshot) const;
    [[nodiscard]] EarlyStopping judged(const std::vector<Epoch>& curve) const;

    backend::Device& device_;
    const comm::Group& group_;
    comm::AllReduce& all_reduce_;
    const data::Dataset& dataset_;
    Recipe recipe_;
    HostMemory memory_;
    Profile* profile_;  ///< null: not measured
    data::Split split_;
    std::vector<data::SystemShare> shares_;  ///< of an epoch
    std::vector<float> class_weights_;       ///< empty: all 1
    std::int64_t global_batch_;
    double initial_rate_;  ///< scaled
    std::unique_ptr<Learner> learner_;
    nn::ModelState best_state_;
    EarlyStopping stopping_;
    Pruner pruner_;  ///< may be empty
    std::vector<Epoch> curve_;
    Position position_;
    PartialSums sums_;
    std::optional<backend::LossScale> loss_scale_;  ///< after the steps that are seen done
    std::int64_t epoch_ranks_;      ///< that trained the present epoch so far; 0: different numbers of them
    std::int64_t steps_asked_ = 0;  ///< for which the device was asked, and which finish_steps() has not seen done
    bool epoch_is_over_ = false;    ///< with the steps that were asked for
    std::int64_t steps_done_ = 0;
    double step_seconds_ = 0;
    double seconds_before_ = 0;          ///< of the batches before the last restore()
    std::optional<State> ended_;         ///< what the group agreed on
    std::vector<std::uint32_t> order_;   ///< in which the epoch `order_epoch_` sees its samples
    std::int64_t order_epoch_ = -1;      ///< none
    std::vector<std::int64_t> indices_;  ///< this rank's images of the batches that are asked for, padded
    std::vector<std::int64_t> coming_;   ///< those of the batches behind them, which are read ahead
    std::vector<StepPlan> step_plans_;
};

/// Collective over the worker. Loss and accuracy of `weights` (PyTorch's names) on a data set, for a model without a
/// training: each sample counts once, whatever the number of ranks. `batch` samples per rank at once. Of all samples,
/// or of those with the indices `samples`, in their order. Throws ConfigError (the network cannot exist), FileError
/// (the weights are not this model's) and, on all ranks where one has not the memory or cannot read an image,
/// std::bad_alloc and StorageError.
[[nodiscard]] Measured measure(backend::Device& device, const comm::Group& group, const Recipe& recipe,
                               const NamedArrays& weights, const data::Dataset& dataset, std::int64_t batch,
                               std::span<const std::int64_t> samples = {});

}  // namespace finch::train
