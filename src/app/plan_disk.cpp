#include "finch/app/plan_disk.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/evaluate/kept_files.hpp"
#include "finch/run/results.hpp"

#include <algorithm>
#include <optional>
#include <system_error>
#include <variant>

namespace finch::app {
namespace {

// Bounds of parts of the files. tests/app/disk.cpp compares them with files that Finch writes.
constexpr double fixed_bytes = 1 << 16;    ///< of an archive: configuration, starts, events
constexpr double individual_bytes = 1100;  ///< in the archive, without genes, islands and curve
constexpr double gene_bytes = 8;
constexpr double island_bytes = 12;        ///< of a row of /memberships
constexpr double without_limit = 1000;     ///< individuals, if the budget does not limit them
constexpr double epoch_bytes = 64;         ///< of a row of /curves
constexpr double metric_bytes = 84;        ///< of a row of /metrics
constexpr double tensor_bytes = 1024;      ///< the description of a dataset
constexpr double other_datasets = 64;      ///< of a file with weights, in addition to its tensors
constexpr double tensors_of_snapshot = 5;  ///< weights, best weights, average, optimizer states
constexpr double files_at_once = 3;        ///< a file, its predecessor, and the next one while it is written

double number(std::int64_t value) {
    return static_cast<double>(value);
}

/// Returns the largest number of individuals that the budget allows; nothing if it does not limit them.
std::optional<double> individuals_of(const island::Budget& budget, double workers) {
    std::optional<double> most;
    for (const auto& [limit, each] : {std::pair(budget.evaluations, 1.0), std::pair(budget.generations, workers),
                                      std::pair(budget.epochs, 1.0)}) {  // each training has at least one epoch
        if (limit) {
            most = std::min(each * number(*limit), most.value_or(each * number(*limit)));
        }
    }
    return most;
}

/// Returns the bytes of the results of one data set in models/best.h5.
double results_bytes(const data::Dataset& set) {
    const double outputs = number(set.outputs());
    const double images = 2 * std::min<double>(run::most_image_bytes,
                                               (run::most_mistakes + run::most_drawn) * number(set.bytes_per_image()));
    return number(set.samples()) * (24 + 8 * number(set.target_size) + 4 * outputs) + 8 * outputs * outputs + images;
}

/// Returns the bytes of all files with weights. A snapshot, with optimizer states, is the largest of them.
double weights_bytes(const config::Config& config, const cluster::Layout& layout, const Networks& networks,
                     const data::Datasets& datasets) {
    const double leaders = number(std::ssize(layout.leaders));
    const double file = number(networks.snapshot_bytes) / 2 +  // which counts memory and file
                        tensor_bytes * (tensors_of_snapshot * number(networks.most_tensors) + other_datasets) +
                        number(networks.most_epochs) * (epoch_bytes + 8 * number(networks.most_norms));
    double files = leaders * (2 * config.workers.slots + 1) + files_at_once * (leaders + 1);
    if (networks.inherits) {
        files += leaders * (2 * number(evaluate::ParentWeights::most) + 1);
    }
    if (config.final_choice) {
        files += 2 * number(config.final_choice->evaluations()) + leaders;
    }
    if (config.inherit) {
        const int rungs = config.inherit->rungs.passed(networks.most_epochs - 1);
        files += number(layout.islands) * rungs * number(config.inherit->parents) + leaders;
    }
    return files * file + files_at_once * (results_bytes(datasets.test) + results_bytes(datasets.training));
}

}  // namespace

double disk_bytes(const config::Config& config, const cluster::Layout& layout, const Networks& networks,
                  const data::Datasets* datasets) {
    const double leaders = number(std::ssize(layout.leaders));
    const double in_training = leaders * config.workers.slots;
    const double individuals = individuals_of(config.budget, leaders).value_or(without_limit) + in_training;
    const auto* const command = std::get_if<config::CommandObjective>(&config.objective);
    const std::int64_t epochs_each = command != nullptr ? command->epochs : networks.most_epochs;
    double epochs = individuals * number(epochs_each);
    if (config.budget.epochs && !config.inherit) {  // the curve of an heir repeats those of its ancestors
        epochs = std::min(epochs, number(*config.budget.epochs) + in_training * number(epochs_each));
    }
    const double archive = fixed_bytes +
                           individuals * (individual_bytes + gene_bytes * number(std::ssize(config.space.genes)) +
                                          island_bytes * number(layout.islands)) +
                           epochs * (epoch_bytes + number(networks.most_norms) * metric_bytes);
    const double weights = datasets != nullptr ? weights_bytes(config, layout, networks, *datasets) : 0;
    return (files_at_once + 1) * archive + weights;  // journals are as large as an archive, if none can be written
}

std::string disk_text(const config::Config& config, double bytes, const std::filesystem::path& directory) {
    std::string text = fmt::format("disk: at most {} MiB in the run directory", mebibytes(bytes));
    text += individuals_of(config.budget, 1) ? "" : fmt::format(" for {} evaluations", without_limit);
    if (const auto* const command = std::get_if<config::CommandObjective>(&config.objective)) {
        text += fmt::format("; add the folders that programs keep (keep: {}){}", word(command->keep),
                            config.inherit ? " and the checkpoints for heirs (search.inherit)" : "");
    }
    text += "\n";
    std::error_code failure;
    std::filesystem::path there = std::filesystem::absolute(directory, failure);
    while (!failure && there.has_relative_path() && !std::filesystem::exists(there, failure)) {
        there = there.parent_path();
    }
    const std::filesystem::space_info space = std::filesystem::space(there, failure);
    if (!failure && static_cast<double>(space.available) < bytes) {
        text += fmt::format("warning: the run directory may need {} MiB, but {} has only {} MiB of free space\n",
                            mebibytes(bytes), there.string(), space.available >> 20);
    }
    return text;
}

}  // namespace finch::app
