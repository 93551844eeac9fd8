#pragma once

#include "finch/base/class_counts.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/nn/average.hpp"
#include "finch/nn/model.hpp"
#include "finch/nn/optimizer.hpp"
#include "finch/train/profile.hpp"
#include "finch/train/recipe.hpp"

#include "samples.hpp"
#include "step_sums.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace finch::train {

/// The values of one part of a training step that depend on the position in the training.
struct StepPlan {
    double batch_weight = 0;        ///< sum of the weights of all samples of the global batch
    std::int64_t first_sample = 0;  ///< index of this rank's first sample in the global batch
    double learning_rate = 0;
};

/// The origin of a training's random numbers. The random numbers depend only on these values and on the step.
struct RandomSource {
    std::uint64_t seed = 0;
    std::uint64_t individual = 0;
};

/// A model, its optimizer and its data on this rank: everything with a size that depends on the batch. Each call of
/// train() or validate() enqueues many steps. On an asynchronous device, the steps are complete when synchronize()
/// returns.
///
/// If the host takes part in the all-reduces (MPI), the learner stores an exception that a computation throws. After an
/// exception, the learner's collectives run with zeros and its losses are NaN, so that the other ranks do not wait.
/// throw_failure() rethrows the exception.
///
/// If the weights are averaged, the model is packed with the average before validation and with its own weights before
/// training. The packing is enqueued after the running steps. Packing copies no arena, and the host does not wait for
/// it.
class Learner {
public:
    /// `device`, `all_reduce`, `dataset` and `profile` must outlive this object. `profile` may be null. Throws
    /// std::bad_alloc, and throws ConfigError if the device cannot take all parts of one step.
    Learner(backend::Device& device, comm::AllReduce& all_reduce, nn::ModelPlan plan, const Options& options,
            const data::Dataset& dataset, const data::Options& normalisation, std::span<const float> class_weights,
            RandomSource random, Profile* profile);
    ~Learner();
    Learner(const Learner&) = delete;
    Learner& operator=(const Learner&) = delete;

    [[nodiscard]] nn::Model& model() noexcept { return model_; }
    [[nodiscard]] nn::Optimizer& optimizer() noexcept { return optimizer_; }
    /// The largest number of steps in one call of train(), and of validate().
    [[nodiscard]] std::int64_t most_training_steps() const { return most_batches(training_) / micro_batches_; }
    [[nodiscard]] std::int64_t most_validation_steps() const { return most_batches(validation_); }
    /// Number of batches of images that are read in advance; 0 if the images are in memory.
    [[nodiscard]] std::int64_t batches_ahead() const noexcept { return batches_ahead_; }

    /// state() returns and set_state() sets the weights of the model. Both functions ignore the average of the weights.
    [[nodiscard]] nn::ModelState state() const;
    void set_state(const nn::ModelState& state);
    /// The average of the weights; null if the weights are not averaged.
    [[nodiscard]] nn::WeightAverage* average() noexcept { return average_ ? &*average_ : nullptr; }
    /// Returns the weights that validate() uses: the average if it has begun, otherwise state().
    [[nodiscard]] nn::ModelState validated_state() const;

    /// Collective over the worker. Enqueues optimizer steps, each of Options::micro_batches `parts`. `indices` (parts,
    /// batch) are this rank's images; −1 is padding. Between two synchronize(), call train() and validate() at most
    /// once each.
    void train(std::span<const std::int64_t> indices, std::span<const StepPlan> parts);
    /// Local. Enqueues the computation of the losses of the images `indices` (whole batches; −1 is padding).
    void validate(std::span<const std::int64_t> indices);
    /// Local. Announces the images of the steps that follow the enqueued ones, so that they can be read in advance.
    void announce_training(std::span<const std::int64_t> indices) { training_.context->announce(indices); }
    void announce_validation(std::span<const std::int64_t> indices) { validation_.context->announce(indices); }
    /// Waits for all enqueued steps. Returns the seconds that the steps took by the device's clock.
    double synchronize();
    /// True if training steps wait for those of other trainings (backend::CapturedStep::waits()).
    [[nodiscard]] bool training_waits() const { return training_.step->waits(); }

    /// The losses that train() and validate() have summed since set_sums(). Valid only after synchronize().
    [[nodiscard]] backend::LossSums training_sums() const { return sums(training_); }
    [[nodiscard]] backend::LossSums validation_sums() const { return sums(validation_); }
    /// The counts of the validated samples by class, in the same way; empty for data with targets.
    [[nodiscard]] const std::vector<ClassCounts>& class_counts() const noexcept { return class_counts_; }
    /// `classes`: the counts by class; empty: all 0.
    void set_sums(const backend::LossSums& training, const backend::LossSums& validation,
                  std::span<const ClassCounts> classes);
    /// Returns the loss scale, or nothing if the loss is not scaled. Valid only after synchronize().
    [[nodiscard]] std::optional<backend::LossScale> loss_scale() const;
    void set_loss_scale(const backend::LossScale& scale) { training_.context->set_loss_scale(scale); }

    /// Rethrows an exception that a computation threw since the last call, if there is one.
    void throw_failure();

private:
    /// The steps of one kind (training or validation): their data and the captured step.
    struct Work {
        std::unique_ptr<backend::StepContext> context;
        std::unique_ptr<backend::CapturedStep> step;
        bool is_under_way = false;
    };

    enum class Packed { own, average };

    [[nodiscard]] nn::ModelState counted(nn::ModelState state) const;
    void pack(Packed weights);
    [[nodiscard]] backend::LossSums sums(const Work& work) const;
    [[nodiscard]] std::int64_t most_batches(const Work& work) const;
    void run(Work& work, std::span<const std::int64_t> indices, std::int64_t steps);
    void fill(Work& work, std::span<const std::int64_t> indices);
    void count_classes();
    template <class Action>
    void attempt(Action&& action);
    void enter(backend::Activity activity);
    void train_once();
    void compute_grads(bool is_last);

    backend::Device& device_;
    comm::AllReduce& all_reduce_;
    Profile* profile_;                                       ///< null: no profiling
    std::unique_ptr<backend::DeviceLapTimer> device_timer_;  ///< null: no profiling, or the host's clock is used
    backend::LapTimer* timer_;                               ///< timer of the steps; null: no profiling
    nn::Model model_;
    nn::Optimizer optimizer_;
    std::optional<nn::WeightAverage> average_;
    RandomSource random_;
    Loss loss_;
    float label_smoothing_;
    std::int64_t micro_batches_;
    std::int64_t batches_ahead_;
    bool scales_loss_;
    backend::Buffer added_grads_;  ///< sum over the parts before the last; empty if there is one part
    StepSums sums_;
    Work training_;
    Work validation_;
    Packed packed_ = Packed::own;                      ///< after the enqueued steps
    std::unique_ptr<backend::CapturedStep> pack_own_;  ///< this and pack_average_: null without an average
    std::unique_ptr<backend::CapturedStep> pack_average_;
    std::span<const std::int32_t> labels_;       ///< of the data set; empty for data with targets
    std::vector<std::int64_t> validated_;        ///< images of the last validate(); −1 is padding
    std::vector<ClassCounts> class_counts_;      ///< by class; empty for data with targets
    std::vector<backend::StepScalars> scalars_;  ///< of the steps to enqueue
    std::exception_ptr failure_;
    bool failed_ = false;  ///< a computation has failed; stays true
};

/// Returns the function that computes the losses of the model's outputs. `device` must outlive the function.
[[nodiscard]] nn::Model::AddLosses losses_of(backend::Device& device, const nn::Model& model, Loss loss);
/// Local. Executes one validation step: adds the losses of the context's next batch to the context's sums. The logits
/// remain in the model. `timer` may be null.
void evaluate_step(backend::Device& device, backend::StepContext& context, nn::Model& model, Loss loss,
                   backend::LapTimer* timer = nullptr);

}  // namespace finch::train
