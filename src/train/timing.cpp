#include "finch/train/timing.hpp"

#include "finch/base/error.hpp"
#include "finch/data/excerpt.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <span>
#include <utility>

namespace finch::train {
namespace {

constexpr std::int64_t most_batches = 100;  ///< batches in a measured epoch, at most
constexpr std::size_t fewest_epochs = 3;    ///< measured epochs, at least
constexpr double long_time = 1;             ///< seconds; if an epoch takes this long, one epoch is enough

std::int64_t batches_of(std::int64_t samples, std::int64_t batch) {
    return (samples + batch - 1) / batch;
}

/// The shortened data set and recipe that are used for a measurement.
struct Rehearsal {
    data::Datasets datasets;
    Recipe recipe;
    EpochBatches batches;
};

Rehearsal rehearsal(const data::Dataset& images, const Recipe& recipe, const data::Split& split, int ranks,
                    std::int64_t batches) {
    constexpr double hardly_any_rate = 1e-9;  // but not subnormal, which would slow down processors
    const std::int64_t batch = global_batch_on(ranks, recipe.training);
    const auto first = [](const std::vector<std::int64_t>& samples, std::int64_t count) {
        return std::span(samples).first(static_cast<std::size_t>(std::min(std::ssize(samples), count)));
    };
    Rehearsal made{.datasets = {.training = data::excerpt(images, first(split.training, batches * batch),
                                                          first(split.validation, batches * batch)),
                                .test = {},
                                .fingerprint = ""},
                   .recipe = recipe,
                   .batches = {}};
    made.recipe.data.systems.clear();
    made.recipe.data.training_samples.reset();
    made.recipe.training.learning_rate = hardly_any_rate;
    made.recipe.training.patience.reset();
    made.recipe.training.balanced_classes = false;  // the excerpt may not contain all classes
    made.batches = epoch_batches(made.recipe, made.datasets.training, ranks);
    return made;
}

/// The seconds of an epoch, by phase.
struct EpochSeconds {
    double training = 0;
    double validation = 0;
    [[nodiscard]] double whole() const { return training + validation; }
};

/// Returns the longest times over all ranks, which determine the duration, because ranks wait for each other.
EpochSeconds seconds_of(const GroupTimes& times) {
    EpochSeconds longest;
    for (const RankTimes& rank : times.ranks) {
        const double validation = rank.of(backend::Activity::validation);
        longest.validation = std::max(longest.validation, validation);
        longest.training = std::max(longest.training, rank.whole() - validation);
    }
    return longest;
}

EpochSeconds median(std::vector<EpochSeconds> epochs) {
    const auto middle = epochs.begin() + std::ssize(epochs) / 2;
    std::nth_element(epochs.begin(), middle, epochs.end(),
                     [](const EpochSeconds& a, const EpochSeconds& b) { return a.whole() < b.whole(); });
    return *middle;
}

struct Measurement {
    double first_epoch = 0;            ///< seconds of the first epoch, with planning and allocation
    std::vector<EpochSeconds> epochs;  ///< the epochs after the first
};

/// Collective over the worker. Returns nothing, on all ranks, if one rank cannot create the training or if the training
/// diverges.
std::optional<Measurement> measure(backend::Device& device, const comm::Group& group, comm::AllReduce& all_reduce,
                                   Rehearsal& rehearsal, double seconds, const std::function<double()>& now) {
    constexpr std::int64_t endless = 1000000;
    const double begin = now();
    rehearsal.recipe.training.epochs = endless;
    Profile profile(now);
    std::optional<Training> training;
    try {
        training.emplace(device, group, all_reduce, rehearsal.datasets, rehearsal.recipe, HostMemory{}, &profile);
    } catch (const ConfigError&) {
    } catch (const std::bad_alloc&) {
    }
    if (group.maximum(training ? 0 : 1) != 0) {
        return std::nullopt;
    }
    Measurement measured;
    bool is_enough = false;
    for (std::size_t epochs = 1; !is_enough; ++epochs) {
        while (training->curve().size() < epochs && training->progress() < 1) {
            training->advance(rehearsal.batches.training + rehearsal.batches.validation);
        }
        if (training->curve().size() < epochs) {
            return std::nullopt;
        }
        const double passed = now() - begin;
        measured.first_epoch = epochs == 1 ? passed : measured.first_epoch;
        const double measured_for = passed - measured.first_epoch;
        const bool is_enough_here = (epochs > fewest_epochs && measured_for >= seconds) ||
                                    (epochs > 1 && measured_for >= std::max(seconds, long_time));
        is_enough = group.maximum(group.is_leader() && is_enough_here ? 1 : 0) != 0;
    }
    const ProfileReport report = profile.report(group);
    for (std::size_t i = 1; i < report.epochs.size(); ++i) {
        measured.epochs.push_back(seconds_of(report.epochs[i]));
    }
    return measured;
}

Timing timing_of(const Measurement& measured, const EpochBatches& batches, double start) {
    const EpochSeconds epoch = median(measured.epochs);
    return {.start = start,
            .training_batch = epoch.training / static_cast<double>(batches.training),
            .validation_batch = epoch.validation / static_cast<double>(batches.validation)};
}

}  // namespace

EpochBatches epoch_batches(const Recipe& recipe, const data::Dataset& images, int ranks) {
    const data::Split split = data::split(recipe.data, images, recipe.seed);
    const std::int64_t batch = global_batch_on(ranks, recipe.training);
    return {
        .training = batches_of(std::ssize(split.training), batch),
        .validation = batches_of(std::ssize(split.validation), ranks * rank_batch_of(batch, ranks, recipe.training))};
}

double training_seconds(const Timing& timing, const EpochBatches& batches, std::int64_t epochs) {
    const double epoch = static_cast<double>(batches.training) * timing.training_batch +
                         static_cast<double>(batches.validation) * timing.validation_batch;
    return timing.start + static_cast<double>(epochs) * epoch;
}

std::optional<Timing> measure_timing(backend::Device& device, const comm::Group& group, comm::AllReduce& all_reduce,
                                     const data::Dataset& images, const Recipe& recipe, double seconds,
                                     const std::function<double()>& now) {
    const data::Split split = data::split(recipe.data, images, recipe.seed);
    Rehearsal shortest = rehearsal(images, recipe, split, group.size(), 1);
    const auto first = measure(device, group, all_reduce, shortest, 0, now);
    if (!first) {
        return std::nullopt;
    }
    const double shortest_epoch = median(first->epochs).whole();
    const double start = std::max(0.0, first->first_epoch - shortest_epoch);
    std::array wanted{seconds / static_cast<double>(2 * fewest_epochs) / shortest_epoch};
    group.minimum(wanted);
    const auto batches = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted.front()), 1, most_batches);
    if (batches == 1) {
        return timing_of(*first, shortest.batches, start);
    }
    Rehearsal longer = rehearsal(images, recipe, split, group.size(), batches);
    const auto measured = measure(device, group, all_reduce, longer, seconds, now);
    return measured ? std::optional(timing_of(*measured, longer.batches, start)) : std::nullopt;
}

}  // namespace finch::train
