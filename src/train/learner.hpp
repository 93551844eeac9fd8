#pragma once

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

/// What of a part of a training step the schedule decides.
struct StepPlan {
    double batch_weight = 0;        ///< of the samples of the whole group, all parts together
    std::int64_t first_sample = 0;  ///< place of this rank's first sample among them
    double learning_rate = 0;
};

/// What a training's random choices are functions of, beside the step.
struct RandomSource {
    std::uint64_t seed = 0;
    std::uint64_t individual = 0;
};

/// A model, its optimizer and its data on this rank: everything whose size depends on the batch. Does steps, many at a
/// time; on a device that runs ahead they are done when synchronize() returns.
///
/// Where the host has a part in the sums over ranks, what a computation throws is kept, and from then on the
/// collectives run with zeros and the losses are NaN: the other ranks are not left waiting. throw_failure() then tells.
///
/// Where an average of the weights is taken, the model is packed with it before validation and with its own weights
/// before training, in line with the steps under way: no arena is copied, and the host waits for nothing.
class Learner {
public:
    /// `device`, `all_reduce`, `dataset` and `profile`, which may be null, must outlive it. Throws std::bad_alloc.
    Learner(backend::Device& device, comm::AllReduce& all_reduce, nn::ModelPlan plan, const Options& options,
            const data::Dataset& dataset, const data::Options& normalisation, std::span<const float> class_weights,
            RandomSource random, Profile* profile);
    ~Learner();
    Learner(const Learner&) = delete;
    Learner& operator=(const Learner&) = delete;

    [[nodiscard]] nn::Model& model() noexcept { return model_; }
    [[nodiscard]] nn::Optimizer& optimizer() noexcept { return optimizer_; }
    /// How many steps train() takes at once; and validate().
    [[nodiscard]] std::int64_t most_training_steps() const { return most_batches(training_) / micro_batches_; }
    [[nodiscard]] std::int64_t most_validation_steps() const { return most_batches(validation_); }
    /// Batches of images that are read ahead of the steps; 0: the images are in memory.
    [[nodiscard]] std::int64_t batches_ahead() const noexcept { return batches_ahead_; }

    /// What the model has learnt; and back. An average stays as it is.
    [[nodiscard]] nn::ModelState state() const;
    void set_state(const nn::ModelState& state);
    /// Null if none is taken.
    [[nodiscard]] nn::WeightAverage* average() noexcept { return average_ ? &*average_ : nullptr; }
    /// What validate() measures: the average of the weights once there is one, else state().
    [[nodiscard]] nn::ModelState validated_state() const;

    /// Collective over the worker. Optimizer steps, each of Options::micro_batches `parts`, of whose images `indices`
    /// (parts, batch; −1 is padding) are this rank's. At most one train() and one validate() between two synchronize().
    void train(std::span<const std::int64_t> indices, std::span<const StepPlan> parts);
    /// Local. Losses of the images `indices` (a multiple of a batch; −1 is padding).
    void validate(std::span<const std::int64_t> indices);
    /// Local. The images of the parts of steps that will be asked for after these, as far as they are read ahead.
    void announce_training(std::span<const std::int64_t> indices) { training_.context->announce(indices); }
    void announce_validation(std::span<const std::int64_t> indices) { validation_.context->announce(indices); }
    /// Waits until what was asked for is done. Returns the seconds that it took by the device's clock.
    double synchronize();

    /// What train() and validate() have summed up since set_sums(). After synchronize().
    [[nodiscard]] backend::LossSums training_sums() const { return sums(training_); }
    [[nodiscard]] backend::LossSums validation_sums() const { return sums(validation_); }
    void set_sums(const backend::LossSums& training, const backend::LossSums& validation);
    /// Nothing if the loss is not scaled. After synchronize().
    [[nodiscard]] std::optional<backend::LossScale> loss_scale() const;
    void set_loss_scale(const backend::LossScale& scale) { training_.context->set_loss_scale(scale); }

    /// Throws what a computation threw since the last call, if one did.
    void throw_failure();

private:
    /// Steps of one kind: what differs between them, and how they are done.
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
    template <class Action>
    void attempt(Action&& action);
    void enter(backend::Activity activity);
    void train_once();
    void compute_grads(bool is_last);

    backend::Device& device_;
    comm::AllReduce& all_reduce_;
    Profile* profile_;                                       ///< null: not measured
    std::unique_ptr<backend::DeviceLapTimer> device_timer_;  ///< null: not measured, or by the host's clock
    backend::LapTimer* timer_;                               ///< of steps; null: not measured
    nn::Model model_;
    nn::Optimizer optimizer_;
    std::optional<nn::WeightAverage> average_;
    RandomSource random_;
    Loss loss_;
    float label_smoothing_;
    std::int64_t micro_batches_;
    std::int64_t batches_ahead_;
    bool scales_loss_;
    backend::Buffer added_grads_;  ///< of the parts before the last; empty if there are none
    StepSums sums_;
    Work training_;
    Work validation_;
    Packed packed_ = Packed::own;                      ///< once the steps that were asked for are done
    std::unique_ptr<backend::CapturedStep> pack_own_;  ///< both null if no average is taken
    std::unique_ptr<backend::CapturedStep> pack_average_;
    std::vector<backend::StepScalars> scalars_;  ///< of the steps that are asked for
    std::exception_ptr failure_;
    bool failed_ = false;  ///< for good
};

/// Local. The losses of the context's present batch, of what the model gave for it, go into its sums; their gradient to
/// `grad`, where it is not null.
void add_losses(backend::Device& device, backend::StepContext& context, nn::Model& model, Loss loss, float* grad);
/// Local. One step of validation: the losses of the context's next batch go into its sums; the logits stay. `timer`:
/// null if it is not measured.
void evaluate_step(backend::Device& device, backend::StepContext& context, nn::Model& model, Loss loss,
                   backend::LapTimer* timer = nullptr);

}  // namespace finch::train
