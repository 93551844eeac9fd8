#pragma once

#include "finch/backend/optimizer.hpp"
#include "finch/data/dataset.hpp"
#include "finch/nn/initialization.hpp"
#include "finch/nn/plan.hpp"
#include "finch/nn/schedule.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace finch::train {

enum class ScaleLearningRate { none, sqrt, linear };
constexpr std::array<std::string_view, 3> words_of(ScaleLearningRate) {
    return {"none", "sqrt", "linear"};
}
using Precision = backend::Precision;

/// The loss function: torch.nn's CrossEntropyLoss for classes, MSELoss or L1Loss for numeric targets.
enum class Loss { cross_entropy, mean_squared_error, mean_absolute_error };
constexpr std::array<std::string_view, 3> words_of(Loss) {
    return {"cross_entropy", "mean_squared_error", "mean_absolute_error"};
}

/// The options of the configuration's section `training:`, with genes replaced by their values.
struct Options {
    std::int64_t epochs = 10;
    std::int64_t batch_size = 64;  ///< global batch; used if batch_size_per_rank is not given
    std::optional<std::int64_t> batch_size_per_rank = {};
    /// Number of parts of a batch that are computed one after the other (gradient accumulation). The gradients of the
    /// parts are added before the all-reduce.
    std::int64_t micro_batches = 1;
    /// Scaling of the learning rate by the number of ranks at the start of the training. Used only with
    /// batch_size_per_rank.
    ScaleLearningRate scale_learning_rate = ScaleLearningRate::none;
    backend::Optimizer optimizer = backend::Adadelta{};
    nn::Initialization initialization = nn::Initialization::pytorch;
    std::optional<double> learning_rate = {};  ///< empty: the optimizer's default rate
    nn::Schedule schedule = nn::ConstantSchedule{};
    nn::Pace pace = nn::Pace::epoch;
    double warm_up_epochs = 0;             ///< epochs in which the rate rises linearly to the schedule's rate
    std::optional<double> clip_norm = {};  ///< largest norm of the all-reduced gradient; empty: no clipping
    bool decay_all = true;                 ///< true: weight decay also applies to biases and normalisations
    Loss loss = Loss::cross_entropy;
    double label_smoothing = 0;              ///< share of the target that is spread evenly over all classes in training
    std::vector<double> class_weights = {};  ///< factor of the loss per label; empty: all 1
    bool balanced_classes = false;  ///< true: class weight = samples / (classes · samples of the class) in training
    /// Decay of the exponential moving average of the weights. Validation and the saved model use the average instead
    /// of the weights. Empty: no average.
    std::optional<double> average = {};
    std::optional<std::int64_t> patience = {};  ///< epochs without improvement until training stops early; empty: never
    Precision precision = Precision::float32;
    bool deterministic = true;
    bool watch = false;    ///< records the norms of weights and gradients of each layer and epoch
    bool inherit = false;  ///< starts from the first parent's best weights if all tensor shapes are equal
};

/// Returns the number of samples in a batch of a worker with `ranks` ranks.
[[nodiscard]] constexpr std::int64_t global_batch_on(std::int64_t ranks, const Options& options) noexcept {
    return options.batch_size_per_rank ? *options.batch_size_per_rank * ranks : options.batch_size;
}
/// Returns the largest number of samples that one rank computes in one part (micro-batch) of a batch.
[[nodiscard]] constexpr std::int64_t rank_batch_of(std::int64_t global_batch, std::int64_t ranks,
                                                   const Options& options) noexcept {
    const std::int64_t part = (global_batch + options.micro_batches - 1) / options.micro_batches;
    return (part + ranks - 1) / ranks;
}

/// Returns true if the precision needs loss scaling, which may skip steps (backend::LossScale).
[[nodiscard]] constexpr bool scales_loss(const Options& options) noexcept {
    return options.precision == Precision::float16;
}

/// Returns the size, in floats, of the buffer that accumulates the gradients of a batch's parts; 0 for one part.
[[nodiscard]] constexpr std::int64_t added_gradients(std::int64_t parameters, const Options& options) noexcept {
    return options.micro_batches > 1 ? parameters : 0;
}

/// The objective of a training. The objective determines the best epoch and early stopping. The weights of the best
/// epoch are kept.
enum class Objective { validation_loss, validation_error };
constexpr std::array<std::string_view, 2> words_of(Objective) {
    return {"validation_loss", "validation_error"};
}

/// Everything that an individual's training depends on, except the data.
struct Recipe {
    std::uint64_t seed = 1;
    std::uint64_t individual = 0;  ///< numeric value of the individual's id
    Objective objective = Objective::validation_loss;
    Options training;
    data::Options data;
    nn::ModelSpec model;
};

/// Calls nn::plan_model() for one rank that computes batches of `batch` samples. Adds to the plan's bytes the memory
/// that the recipe needs for accumulated gradients and averaged weights. Throws ModelError.
[[nodiscard]] nn::ModelPlan plan_training(const Recipe& recipe, nn::SampleShape input, std::int64_t classes,
                                          std::int64_t batch, backend::Blocks blocks = {});

/// Returns whether a training of `child` can continue from a snapshot of `parent` after `epochs` epochs: both have the
/// same tensors and optimizer states, train on the same samples, and epochs are left. Throws ModelError.
[[nodiscard]] bool can_continue(const Recipe& child, const Recipe& parent, std::int64_t epochs, nn::SampleShape input,
                                std::int64_t classes);

}  // namespace finch::train
