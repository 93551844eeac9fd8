#pragma once

#include "finch/backend/device.hpp"
#include "finch/base/class_counts.hpp"
#include "finch/base/epoch.hpp"
#include "finch/base/metric.hpp"
#include "finch/base/named_array.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/data/sampling.hpp"
#include "finch/nn/model.hpp"
#include "finch/train/early_stopping.hpp"
#include "finch/train/profile.hpp"
#include "finch/train/recipe.hpp"

#include <cstdint>
#include <exception>
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
class Watch;
struct StepPlan;

/// Returns the value of the objective after `epoch`; smaller is better.
[[nodiscard]] double objective_value(Objective objective, const Epoch& epoch) noexcept;

/// The state of a training. `pruned` means that the Pruner ended the training before its last epoch.
enum class State { running, finished, diverged, pruned };

/// A function that decides whether a training ends now, from the epochs so far and the planned number of epochs.
using Pruner = std::function<bool(std::span<const Epoch> curve, std::int64_t epochs)>;

/// The results of a model on samples of equal weight. The results are identical on every rank.
struct Measured {
    double loss = 0;
    double accuracy = 0;                      ///< NaN if the data have targets instead of labels
    std::int64_t samples = 0;                 ///< number of samples; each counts once
    std::vector<std::int32_t> predictions{};  ///< per sample: the class with the largest logit (first of equals)
    std::vector<std::int32_t> places{};       ///< per sample: position of its own class by logit; 0: largest logit
    std::vector<float> scores{};  ///< (samples, outputs): softmax or predicted targets; empty above most_scores
};
inline constexpr std::int64_t most_scores = std::int64_t{1} << 26;

/// Throws ConfigError if `device` does not support `precision`. `processor` names the processor in the message.
void check_precision(Precision precision, const backend::Device& device,
                     const std::string& processor = "this processor");

/// The position of a training, and the training loss of the present epoch so far.
struct EpochSoFar {
    std::int64_t epoch = 0;    ///< counted from 1; the ended epoch if no batch of the next one is done
    std::int64_t batch = 0;    ///< number of training batches done in this epoch
    std::int64_t batches = 0;  ///< number of training batches of an epoch
    std::int64_t samples = 0;  ///< number of samples that the group has trained in all epochs
    double training_loss = 0;  ///< mean loss of this rank's samples; of an ended epoch, of all samples
};

/// Host memory that a new training must consider in addition to the free memory.
struct HostMemory {
    std::int64_t reserved = 0;   ///< bytes that another training may need for its snapshot
    std::int64_t returning = 0;  ///< bytes that the caller frees after the training is constructed
};

/// The training of one individual on this rank. The owner of this object advances it by a number of steps at a time.
/// The steps are in training.cpp, their images in batches.cpp, the group's decision at the end of an epoch in
/// epoch_end.cpp, and snapshots in snapshot.cpp. All ranks of the worker call the collective methods in the same order
/// with the same arguments.
class Training {
public:
    /// Local: the constructor is not collective, so that a failing rank can report its error. Plans the model and
    /// allocates all memory. `device`, `group`, `all_reduce`, `datasets` and `profile` must outlive this object.
    /// `profile` is null on all ranks or on none. Throws ConfigError if the network cannot exist, no samples train or
    /// validate, or the device does not support the precision. Throws std::bad_alloc before it allocates if the device
    /// has less free memory than plan().bytes. If the device uses host memory, the free memory must also be enough for
    /// a snapshot.
    Training(backend::Device& device, const comm::Group& group, comm::AllReduce& all_reduce,
             const data::Datasets& datasets, Recipe recipe, HostMemory memory = {}, Profile* profile = nullptr);
    ~Training();
    Training(const Training&) = delete;
    Training& operator=(const Training&) = delete;

    /// Local. Call begin_with() before the first step. Sets the initial weights (PyTorch's names); the average of the
    /// weights starts from them too. Throws FileError if `weights` do not fit this model.
    void begin_with(const NamedArrays& weights);
    /// Local. From now on, advance() returns at the end of each epoch, even if steps are left. The training is then
    /// between two epochs, and all ranks can make a snapshot there.
    void pause_after_epochs() noexcept { pauses_ = true; }
    /// Leader only. Sets the function that decides, after each epoch except the last, whether the training ends.
    void set_pruner(Pruner pruner) { pruner_ = std::move(pruner); }

    /// Collective over the worker. Processes up to `steps` batches of training or validation and returns state(). On an
    /// asynchronous device, advance() waits for the batches of the previous call, enqueues its own batches and returns.
    /// After the last validation batch of an epoch, the sums are all-reduced, the leader decides, and all ranks return
    /// the same state. Within an epoch, a rank knows only its own loss, so the caller must take the largest state over
    /// the group. The results are bitwise the same however the batches are divided into calls. If a batch throws on
    /// this rank, the rank continues its collectives with zeros and NaN losses, and advance() rethrows the exception at
    /// its end.
    State advance(std::int64_t steps);

    /// Local. Enqueues the validation steps that advance() postponed because its training steps were delayed
    /// (CapturedStep::waits()). Call Device::launch_waiting_steps() before and after it. If it fails, the next
    /// advance() throws the exception.
    void enqueue_validation();

    /// Local. Returns `diverged` once this rank has a loss that is not finite, or gradients that overflow even with the
    /// smallest loss scale.
    [[nodiscard]] State state() const noexcept;
    /// The epochs that ended so far, oldest first.
    [[nodiscard]] const std::vector<Epoch>& curve() const noexcept { return curve_; }
    /// With Options::watch, the norms of weights and gradients of each layer after each epoch. The gradient is that of
    /// the epoch's last step, after clipping.
    [[nodiscard]] std::vector<Metric> watched() const;
    /// The epoch with the smallest value of the objective (the first of equal ones), counted from 1; 0 if there is none
    /// yet.
    [[nodiscard]] std::int64_t best_epoch() const noexcept { return stopping_.best_epoch; }
    /// Number of samples of one optimizer step over the whole group. The number is fixed at the start: a resume on
    /// another number of ranks does not change it.
    [[nodiscard]] std::int64_t global_batch() const noexcept { return global_batch_; }
    /// The loss scale and the number of skipped steps; empty if the precision needs no loss scaling.
    [[nodiscard]] const std::optional<backend::LossScale>& loss_scale() const noexcept { return loss_scale_; }
    /// Number of samples that the whole group has trained so far, without inherited epochs.
    [[nodiscard]] std::int64_t samples_trained() const noexcept;
    /// Local. Describes the synchronized batches of the present epoch.
    [[nodiscard]] EpochSoFar epoch_so_far() const;
    [[nodiscard]] const nn::ModelPlan& plan() const noexcept;
    /// The progress from 0 to 1: processed samples divided by the samples of all epochs, validation included. The
    /// progress is 1 once the training has ended.
    [[nodiscard]] double progress() const noexcept;
    /// steps_done() is the number of synchronized batches since construction. step_seconds() is the time of these
    /// batches by the device's clock.
    [[nodiscard]] std::int64_t steps_done() const noexcept { return steps_done_; }
    [[nodiscard]] double step_seconds() const noexcept { return step_seconds_; }
    /// Leader only. The seconds of all batches so far by the clock of the leader's device, including batches before a
    /// restore(), but not those of inherited epochs.
    [[nodiscard]] double training_seconds() const noexcept { return seconds_before_ + step_seconds_; }

    /// Collective over the worker. Waits for the enqueued batches, then returns all data that a resume on any number of
    /// ranks needs. The data are the weights and their average, optimizer, loss scale, weights of the best epoch,
    /// position, partial sums per rank, and learning curve. The arrays are identical on every rank.
    [[nodiscard]] NamedArrays snapshot();
    /// Local. Continues from a snapshot. On the same number of ranks, the results are bitwise equal to the results of
    /// an uninterrupted training. On another number of ranks, the global batch and the learning rate stay the same.
    /// Throws FileError if the snapshot does not fit the recipe, or if its best weights do not belong to the best epoch
    /// by the objective. After a std::bad_alloc, this object can only be destroyed.
    void restore(const NamedArrays& snapshot);
    /// Local. Continues the training of another individual from a snapshot between two epochs, with this training's
    /// recipe: its seed, learning rate and batch size. The epochs of the snapshot become inherited epochs. Throws like
    /// restore().
    void continue_from(NamedArrays snapshot);

    /// Local. Returns the weights of the best epoch under PyTorch's names, or the present weights before the end of the
    /// first epoch. With Options::average, best_weights() are averaged weights, because validation uses the average.
    [[nodiscard]] NamedArrays best_weights() const;

    /// Collective over the worker. Measures best_weights() on a data set. Throws ConfigError if the shape of the data
    /// does not fit the model.
    [[nodiscard]] Measured measure(const data::Dataset& dataset);

private:
    /// The part of an epoch to which the next batch belongs.
    enum class Phase : std::int64_t { training = 0, validation = 1 };

    /// The position in the training. The position counts samples of the whole group, so it is independent of the number
    /// of ranks.
    struct Position {
        std::int64_t epoch = 0;  ///< counted from 0
        Phase phase = Phase::training;
        std::int64_t sample = 0;  ///< next sample of the phase
    };

    /// The sums of this rank in an unfinished epoch.
    struct PartialSums {
        backend::LossSums training;
        backend::LossSums validation;
        double seconds = 0;
        std::vector<ClassCounts> classes = {};  ///< only from a snapshot; otherwise the learner has them
    };

    /// The average of the weights in a snapshot.
    struct Average {
        nn::ModelState state = {};
        std::int64_t taken = 0;  ///< number of averaged weight sets; 0: the average has not begun
    };

    struct EpochDecision;

    [[nodiscard]] std::unique_ptr<Learner> make_learner(std::int64_t global_batch) const;
    void check_memory(const nn::ModelPlan& plan) const;
    [[nodiscard]] std::int64_t training_samples() const noexcept { return std::ssize(split_.training); }
    [[nodiscard]] std::int64_t validation_samples() const noexcept { return std::ssize(split_.validation); }
    [[nodiscard]] std::int64_t samples_before_position() const noexcept;
    [[nodiscard]] double batch_weight(std::int64_t end) const;
    [[nodiscard]] double epoch_weight();
    [[nodiscard]] std::vector<data::Share> parts_of_batch(std::int64_t begin, std::int64_t end) const;
    void add_training_images(const data::Share& share, std::vector<std::int64_t>& indices) const;
    void add_validation_images(std::int64_t begin, std::vector<std::int64_t>& indices) const;
    void announce_training();
    void announce_validation();
    /// Returns the learning rate of the step that contains `sample` of the present epoch.
    [[nodiscard]] double learning_rate(std::int64_t sample) const;
    std::int64_t ask_for_training(std::int64_t steps);
    std::int64_t ask_for_validation(std::int64_t steps);
    void finish_steps();
    void watch_steps();
    void shuffle_epoch();

    void end_epoch();
    void agree_on_epoch();
    [[nodiscard]] EpochDecision judge(std::span<const double> losses, std::span<const std::int64_t> counts,
                                      std::span<const ClassCounts> classes);
    [[nodiscard]] bool is_pruned_after(const Epoch& epoch) const;
    void obey(const EpochDecision& decision);

    void check_identity(const NamedArrays& snapshot) const;
    [[nodiscard]] Position read_position(const NamedArrays& snapshot) const;
    [[nodiscard]] PartialSums read_partial_sums(const NamedArrays& snapshot) const;
    [[nodiscard]] std::vector<ClassCounts> classes_of_rank(const NamedArrays& snapshot, std::int64_t ranks,
                                                           std::int64_t rank) const;
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
    Profile* profile_;  ///< null: no profiling
    data::Split split_;
    std::vector<data::SystemShare> shares_;  ///< each system's share of an epoch
    std::vector<float> class_weights_;       ///< empty: all 1
    std::int64_t global_batch_;
    double initial_rate_;  ///< scaled by the number of ranks
    std::unique_ptr<Learner> learner_;
    std::unique_ptr<Watch> watch_;  ///< null without Options::watch
    nn::ModelState best_state_;
    EarlyStopping stopping_;
    Pruner pruner_;  ///< may be empty
    bool pauses_ = false;
    std::int64_t inherited_epochs_ = 0;
    std::vector<Epoch> curve_;
    Position position_;
    Position done_;  ///< after the synchronized steps
    PartialSums sums_;
    std::optional<backend::LossScale> loss_scale_;  ///< after the synchronized steps
    std::int64_t epoch_ranks_;                      ///< number of ranks in the present epoch; 0: it changed
    std::int64_t validation_steps_ = 0;             ///< postponed until enqueue_validation()
    std::exception_ptr failure_;                    ///< what enqueue_validation() threw
    std::int64_t steps_asked_ = 0;                  ///< steps enqueued and not yet synchronized by finish_steps()
    bool training_is_over_ = false;                 ///< true: they contain the last training step of the epoch
    bool epoch_is_over_ = false;                    ///< true: the enqueued steps are the last of the epoch
    std::int64_t steps_done_ = 0;
    double step_seconds_ = 0;
    double seconds_before_ = 0;          ///< seconds of the batches before the last restore()
    std::optional<State> ended_;         ///< the final state that the group agreed on
    std::vector<std::uint32_t> order_;   ///< order of the samples in epoch `order_epoch_`
    std::int64_t order_epoch_ = -1;      ///< -1: no epoch yet
    std::vector<std::int64_t> indices_;  ///< this rank's images of the batches to enqueue, padded
    std::vector<std::int64_t> coming_;   ///< this rank's images of later batches, to be read in advance
    std::vector<StepPlan> step_plans_;
};

/// Collective over the worker. Measures `weights` (PyTorch's names) on a data set, for a model without a Training. Each
/// sample is measured exactly once, on any number of ranks. Each rank computes `batch` samples per pass. Measures the
/// samples with the indices `samples`, in their order, or all samples if `samples` is empty. Throws ConfigError if the
/// network cannot exist and FileError if the weights do not fit the network. Throws std::bad_alloc or StorageError on
/// all ranks if one rank has too little memory or cannot read an image.
[[nodiscard]] Measured measure(backend::Device& device, const comm::Group& group, const Recipe& recipe,
                               const NamedArrays& weights, const data::Dataset& dataset, std::int64_t batch,
                               std::span<const std::int64_t> samples = {});

}  // namespace finch::train
