#include "finch/app/plan_disk.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/evaluate/kept_files.hpp"
#include "finch/run/results.hpp"
#include "finch/train/training.hpp"

#include <algorithm>
#include <limits>
#include <system_error>
#include <variant>

namespace finch::app {
namespace {

// Bounds of parts of the files. tests/app/disk.cpp compares them with files that Finch writes.
constexpr double fixed_bytes = 1 << 16;    ///< of an archive: configuration, starts, events
constexpr double individual_bytes = 1024;  ///< of a row of /individuals without genes, and of a problem
constexpr double epoch_bytes = 64;         ///< of a row of /curves
constexpr double metric_bytes = 84;        ///< of a row of /metrics
constexpr double membership_bytes = 12;    ///< of a row of /memberships
constexpr double home_bytes = 20;          ///< of a row of /homes
constexpr double worker_bytes = 512;       ///< of a row of /workers
constexpr double dataset_bytes = 1024;     ///< of the description of a dataset
constexpr double other_datasets = 64;      ///< of a model file, in addition to its tensors
constexpr double copies_of_tensors = 5;    ///< in a snapshot: weights, best weights, average; and optimizer states
constexpr double image_bytes = 4.0 * run::most_image_bytes;  ///< of models/best.h5: mistakes and samples of two sets
constexpr double files_at_once = 3;  ///< a file, its predecessor, and the next one while it is written

double number(std::int64_t value) {
    return static_cast<double>(value);
}

/// Returns the largest number of individuals that the budget allows.
std::optional<double> individuals_of(const island::Budget& budget, double workers) {
    double most = std::numeric_limits<double>::infinity();
    if (budget.evaluations) {
        most = std::min(most, number(*budget.evaluations));
    }
    if (budget.generations) {
        most = std::min(most, workers * number(*budget.generations));
    }
    if (budget.epochs) {
        most = std::min(most, number(*budget.epochs));  // each training has at least one epoch
    }
    return most < std::numeric_limits<double>::infinity() ? std::optional(most) : std::nullopt;
}

std::int64_t epochs_of(const config::Config& config, const Networks& networks) {
    const auto* const command = std::get_if<config::CommandObjective>(&config.objective);
    return command != nullptr ? command->epochs : networks.most_epochs;
}

double archive_bytes(const config::Config& config, const cluster::Layout& layout, const Networks& networks,
                     double individuals) {
    const double islands = number(layout.islands);
    const double places =
        config.exchange.kind == search::ExchangeKind::pollination ? islands * membership_bytes : home_bytes;
    double epochs = individuals * number(epochs_of(config, networks));
    if (config.budget.epochs && !config.inherit) {  // the curve of an heir repeats those of its ancestors
        const double in_training = number(std::ssize(layout.leaders)) * config.workers.slots;
        epochs = std::min(epochs, number(*config.budget.epochs) + in_training * number(networks.most_epochs));
    }
    return fixed_bytes + number(std::ssize(layout.leaders)) * worker_bytes +
           individuals * (individual_bytes + 8 * number(std::ssize(config.space.genes)) + places) +
           epochs * (epoch_bytes + number(networks.most_norms) * metric_bytes);
}

/// Returns the bytes of the results on `set`, or on a part of it.
double results_bytes(const data::Dataset& set) {
    const std::int64_t outputs = set.outputs();
    const std::int64_t scores = std::min(train::most_scores, set.samples() * outputs);
    return number(set.samples()) * (24 + 8 * number(set.target_size)) + 4 * number(scores) +
           8 * number(outputs) * number(outputs);
}

double models_bytes(const config::Config& config, double leaders, const Networks& networks,
                    const data::Datasets& datasets) {
    const double weights = number(networks.weights_bytes) +
                           dataset_bytes * (number(networks.most_tensors) + other_datasets) +
                           number(networks.most_epochs) * epoch_bytes;
    double files = leaders * files_at_once;
    if (networks.inherits) {
        files += leaders * (2 * number(evaluate::ParentWeights::most) + 1);
    }
    if (config.final_choice) {
        files += 2 * number(config.final_choice->evaluations()) + leaders;
    }
    constexpr double most_images = 2 * (run::most_mistakes + run::most_drawn);  // of the test and the validation set
    const double images = std::min(image_bytes, most_images * number(datasets.training.bytes_per_image()));
    const double results = results_bytes(datasets.test) + results_bytes(datasets.training) + images;
    return files * weights + files_at_once * (weights + results);
}

}  // namespace

DiskUse disk_use(const config::Config& config, const cluster::Layout& layout, const Networks& networks,
                 const data::Datasets* datasets) {
    const double leaders = number(std::ssize(layout.leaders));
    const double slots = config.workers.slots;
    DiskUse use{.individuals = individuals_of(config.budget, leaders)};
    if (use.individuals) {
        *use.individuals += leaders * slots;  // unfinished ones
    }
    const double content = archive_bytes(config, layout, networks, use.individuals.value_or(1000));
    use.archive = files_at_once * content;
    use.journals = content;
    const auto at_rungs = [&](std::int64_t epochs) {
        return number(layout.islands) * config.inherit->rungs.passed(epochs - 1) * number(config.inherit->parents);
    };
    if (config.inherit && !config.trains()) {
        use.checkpoints = at_rungs(epochs_of(config, networks)) + leaders * (slots + 1);
    }
    if (datasets != nullptr) {
        const double snapshot = number(networks.snapshot_bytes) / 2 +  // which counts memory and file
                                dataset_bytes * (copies_of_tensors * number(networks.most_tensors) + other_datasets) +
                                number(networks.most_epochs) * (epoch_bytes + 8 * number(networks.most_norms));
        use.snapshots = leaders * (2 * slots + 1) * snapshot;
        if (config.inherit) {
            use.snapshots += (at_rungs(networks.most_epochs) + leaders) * snapshot;
        }
        use.models = models_bytes(config, leaders, networks, *datasets);
    }
    return use;
}

std::string disk_text(const config::Config& config, const DiskUse& use, const std::filesystem::path& directory) {
    const double growing = use.archive + use.journals;
    const double others = use.snapshots + use.models;
    const double all = others + (use.individuals ? growing : 0);
    std::string text;
    if (use.individuals) {
        text = fmt::format("disk: at most {} MiB in the run directory: archive {}, journals {}", mebibytes(all),
                           mebibytes(use.archive), mebibytes(use.journals));
    } else {
        text = fmt::format("disk: archive and journals of 1000 evaluations take at most {} MiB", mebibytes(growing));
    }
    if (config.trains()) {
        text += fmt::format(", snapshots {}, models {}", mebibytes(use.snapshots), mebibytes(use.models));
    }
    if (const auto* const command = std::get_if<config::CommandObjective>(&config.objective)) {
        text += fmt::format("; add the folders that programs keep (keep: {})", word(command->keep));
        text += command->epochs == 0 ? " and learning curves" : "";
        text +=
            use.checkpoints > 0 ? fmt::format(" and {} checkpoints for heirs (search.inherit)", use.checkpoints) : "";
    }
    text += "\n";
    std::error_code failure;
    std::filesystem::path there = std::filesystem::absolute(directory, failure);
    while (!failure && there.has_relative_path() && !std::filesystem::exists(there, failure)) {
        there = there.parent_path();
    }
    const std::filesystem::space_info space = std::filesystem::space(there, failure);
    if (!failure && static_cast<double>(space.available) < all) {
        text += fmt::format("warning: the run directory may need {} MiB, but {} has only {} MiB of free space\n",
                            mebibytes(all), there.string(), space.available >> 20);
    }
    return text;
}

}  // namespace finch::app
