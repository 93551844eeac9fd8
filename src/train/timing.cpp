#include "finch/train/timing.hpp"

#include "finch/base/error.hpp"
#include "finch/data/excerpt.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <span>

namespace finch::train {
namespace {

constexpr std::int64_t most_batches = 10;  ///< training batches in a measured epoch
constexpr std::int64_t endless = 1000000;  ///< epochs and steps

/// Returns the share of an epoch's samples that `most_batches` batches of training are.
double share_of_epoch(const data::Split& split, const Recipe& recipe, int ranks) {
    const std::int64_t most = most_batches * global_batch_on(ranks, recipe.training);
    return std::min(1.0, static_cast<double>(most) / static_cast<double>(split.training.size()));
}

std::span<const std::int64_t> first_of(const std::vector<std::int64_t>& samples, double share) {
    const double count = std::max(1.0, std::round(share * static_cast<double>(samples.size())));
    return std::span(samples).first(std::min(samples.size(), static_cast<std::size_t>(count)));
}

Recipe endless_recipe(Recipe recipe) {
    constexpr double hardly_any_rate = 1e-9;  // but not subnormal, which would slow down processors
    recipe.data.systems.clear();
    recipe.data.training_samples.reset();
    recipe.training.epochs = endless;
    recipe.training.learning_rate = hardly_any_rate;
    recipe.training.patience.reset();
    recipe.training.balanced_classes = false;  // the excerpt may not contain all classes
    return recipe;
}

}  // namespace

std::optional<double> measure_training(backend::Device& device, const comm::Group& group, comm::AllReduce& all_reduce,
                                       const data::Dataset& images, const Recipe& recipe, double seconds,
                                       const std::function<double()>& now) {
    const data::Split split = data::split(recipe.data, images, recipe.seed);
    const double share = share_of_epoch(split, recipe, group.size());
    const std::span training_samples = first_of(split.training, share);
    const std::span validation_samples = first_of(split.validation, share);
    data::Datasets excerpt;
    excerpt.training = data::excerpt(images, training_samples, validation_samples);
    const double begin = now();
    std::optional<Training> training;
    try {
        training.emplace(device, group, all_reduce, excerpt, endless_recipe(recipe));
    } catch (const ConfigError&) {
    } catch (const std::bad_alloc&) {
    }
    if (group.maximum(training ? 0 : 1) != 0) {
        return std::nullopt;
    }
    training->pause_after_epochs();
    double first_epoch = 0;  // with planning and allocation
    double epoch = 0;        // mean of the later ones
    bool is_enough = false;
    for (std::size_t epochs = 1; !is_enough; ++epochs) {
        while (training->curve().size() < epochs && training->progress() < 1) {
            training->advance(endless);
        }
        if (training->curve().size() < epochs) {
            return std::nullopt;
        }
        const double passed = now() - begin;
        first_epoch = epochs == 1 ? passed : first_epoch;
        const double measured = passed - first_epoch;
        epoch = epochs == 1 ? 0 : measured / static_cast<double>(epochs - 1);
        is_enough = group.maximum(group.is_leader() && epochs > 1 && measured >= seconds ? 1 : 0) != 0;
    }
    const double scale = static_cast<double>(split.training.size() + split.validation.size()) /
                         static_cast<double>(training_samples.size() + validation_samples.size());
    return std::max(0.0, first_epoch - epoch) + static_cast<double>(recipe.training.epochs) * scale * epoch;
}

}  // namespace finch::train
