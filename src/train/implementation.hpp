#pragma once

#include "finch/comm/group.hpp"
#include "finch/train/early_stopping.hpp"
#include "finch/train/training.hpp"

#include "step.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace finch::train {

/// Which part of an epoch the next batch belongs to.
enum class Phase : std::int64_t { training = 0, validation = 1 };

/// What is done, counted in samples of the whole group, so that it means the same on any number of ranks.
struct Position {
    std::int64_t epoch = 0;  ///< 0 is the first
    Phase phase = Phase::training;
    std::int64_t sample = 0;  ///< of the phase
};

/// What this rank has summed up in an epoch that has not ended.
struct PartialSums {
    backend::LossSums training;
    backend::LossSums validation;
    double seconds = 0;
};

/// The state of one training on one rank: steps in training.cpp, the group's decision in epoch_end.cpp, files in
/// snapshot.cpp.
class Training::Implementation {
public:
    Implementation(backend::Device& device, const comm::Group& group, comm::AllReduce& all_reduce,
                   const data::Datasets& datasets, Recipe recipe, HostMemory memory);

    State advance(std::int64_t steps);
    [[nodiscard]] State state() const noexcept;
    [[nodiscard]] const std::vector<Epoch>& curve() const noexcept { return curve_; }
    [[nodiscard]] std::int64_t best_epoch() const noexcept { return stopping_.best_epoch; }
    [[nodiscard]] std::int64_t global_batch() const noexcept { return global_batch_; }
    [[nodiscard]] std::int64_t samples_trained() const noexcept;
    [[nodiscard]] const nn::ModelPlan& plan() const noexcept { return learner_->model().plan(); }
    [[nodiscard]] double progress() const noexcept;
    [[nodiscard]] std::int64_t steps_done() const noexcept { return steps_done_; }
    [[nodiscard]] double step_seconds() const noexcept { return step_seconds_; }
    [[nodiscard]] double training_seconds() const noexcept;
    [[nodiscard]] NamedArrays snapshot();
    void restore(const NamedArrays& snapshot);
    [[nodiscard]] NamedArrays best_weights() const;
    [[nodiscard]] Measured measure(const data::Dataset& dataset);

private:
    struct Verdict;

    [[nodiscard]] std::unique_ptr<Learner> make_learner(std::int64_t global_batch) const;
    void check_memory(const nn::ModelPlan& plan) const;
    [[nodiscard]] std::int64_t training_samples() const noexcept;
    [[nodiscard]] std::int64_t validation_samples() const noexcept;
    std::int64_t ask_for_training(std::int64_t steps);
    std::int64_t ask_for_validation(std::int64_t steps);
    void pad_indices(std::int64_t batches);
    void finish_steps();
    void shuffle_epoch();

    void end_epoch();
    [[nodiscard]] Verdict judge(std::span<const double> losses, std::span<const std::int64_t> counts);
    void obey(const Verdict& verdict);

    void check_identity(const NamedArrays& snapshot) const;
    [[nodiscard]] Position read_position(const NamedArrays& snapshot) const;
    [[nodiscard]] PartialSums read_partial_sums(const NamedArrays& snapshot) const;
    [[nodiscard]] std::vector<Epoch> read_curve(const NamedArrays& snapshot) const;
    [[nodiscard]] EarlyStopping judged(const std::vector<Epoch>& curve) const;

    backend::Device& device_;
    const comm::Group& group_;
    comm::AllReduce& all_reduce_;
    const data::Dataset& dataset_;
    Recipe recipe_;
    HostMemory memory_;
    data::Split split_;
    std::int64_t global_batch_;
    double initial_rate_;  ///< scaled
    std::unique_ptr<Learner> learner_;
    nn::ModelState best_state_;
    EarlyStopping stopping_;
    std::vector<Epoch> curve_;
    Position position_;
    PartialSums sums_;
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
    std::vector<StepPlan> step_plans_;
};

}  // namespace finch::train
