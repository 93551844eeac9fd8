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

/// torch.nn's CrossEntropyLoss of classes; MSELoss and L1Loss of numbers.
enum class Loss { cross_entropy, mean_squared_error, mean_absolute_error };
constexpr std::array<std::string_view, 3> words_of(Loss) {
    return {"cross_entropy", "mean_squared_error", "mean_absolute_error"};
}

/// The options of `training:`, with genes replaced by their values.
struct Options {
    std::int64_t epochs = 10;
    std::int64_t batch_size = 64;  ///< global; used if batch_size_per_rank is not given
    std::optional<std::int64_t> batch_size_per_rank = {};
    /// Parts of a batch that are computed one after the other, their gradients added before they are summed over ranks.
    std::int64_t micro_batches = 1;
    /// Scaling of the learning rate by the number of ranks at the start; used with batch_size_per_rank.
    ScaleLearningRate scale_learning_rate = ScaleLearningRate::none;
    backend::Optimizer optimizer = backend::Adadelta{};
    nn::Initialization initialization = nn::Initialization::pytorch;
    std::optional<double> learning_rate = {};  ///< nothing: the optimizer's usual rate
    nn::Schedule schedule = nn::ConstantSchedule{};
    nn::Pace pace = nn::Pace::epoch;
    double warm_up_epochs = 0;             ///< in which the rate rises step by step, in proportion, to the schedule's
    std::optional<double> clip_norm = {};  ///< largest norm of the gradient of the whole worker; nothing: any
    bool decay_all = true;                 ///< weight decay for biases and normalisations too
    Loss loss = Loss::cross_entropy;
    double label_smoothing = 0;              ///< share of a label that all classes get alike, in training
    std::vector<double> class_weights = {};  ///< of the losses by label; empty: all 1
    bool balanced_classes = false;  ///< class weights: samples / (classes · samples of the class), of those that train
    /// Decay of the exponential average of the weights, which is validated and kept instead of the weights; nothing: no
    /// average.
    std::optional<double> average = {};
    std::optional<std::int64_t> patience = {};  ///< epochs without improvement before it stops early; nothing: never
    Precision precision = Precision::float32;
    bool deterministic = true;
    bool inherit = false;  ///< begins with its first parent's best weights, where every tensor has the same shape
};

/// Samples of a worker's batch on so many ranks.
[[nodiscard]] constexpr std::int64_t global_batch_on(std::int64_t ranks, const Options& options) noexcept {
    return options.batch_size_per_rank ? *options.batch_size_per_rank * ranks : options.batch_size;
}
/// Samples, at most, of one rank's share of one of its parts.
[[nodiscard]] constexpr std::int64_t rank_batch_of(std::int64_t global_batch, std::int64_t ranks,
                                                   const Options& options) noexcept {
    const std::int64_t part = (global_batch + options.micro_batches - 1) / options.micro_batches;
    return (part + ranks - 1) / ranks;
}

/// Whether gradients need a scaled loss, and steps may be skipped (backend::LossScale).
[[nodiscard]] constexpr bool scales_loss(const Options& options) noexcept {
    return options.precision == Precision::float16;
}

/// Floats in which the gradients of a batch's parts are added.
[[nodiscard]] constexpr std::int64_t added_gradients(std::int64_t parameters, const Options& options) noexcept {
    return options.micro_batches > 1 ? parameters : 0;
}

/// Objective of a training: it decides the best epoch, whose weights are kept, and early stopping.
enum class Objective { validation_loss, validation_error };
constexpr std::array<std::string_view, 2> words_of(Objective) {
    return {"validation_loss", "validation_error"};
}

/// Everything that an individual's training depends on, except the data.
struct Recipe {
    std::uint64_t seed = 1;
    std::uint64_t individual = 0;  ///< its id's value
    Objective objective = Objective::validation_loss;
    Options training;
    data::Options data;
    nn::ModelSpec model;
};

/// nn::plan_model() for one rank that computes `batch` samples at once. Its bytes include what training by this recipe
/// takes beside the model and its optimizer. Throws ModelError.
[[nodiscard]] nn::ModelPlan plan_training(const Recipe& recipe, nn::SampleShape input, std::int64_t classes,
                                          std::int64_t batch);

}  // namespace finch::train
