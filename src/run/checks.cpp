#include "finch/run/checks.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/trial_genomes.hpp"
#include "finch/data/labels.hpp"
#include "finch/data/normalisation.hpp"
#include "finch/data/sampling.hpp"
#include "finch/run/given.hpp"
#include "finch/store/archive.hpp"
#include "finch/train/class_weights.hpp"

#include <algorithm>

namespace finch::run {

void check_search(const config::Config& config, const std::optional<std::vector<std::string>>& genes) {
    if (!genes && config.space.size() == 0) {
        throw ConfigError(
            "search.space: a search needs at least one gene; finch train trains one individual without a search");
    }
    store::check_archivable(config.space);
    if (genes) {
        static_cast<void>(given_genome(config.space, *genes));  // throws if the genes are wrong
    }
}

std::string key_of_joules(const config::Config& config) {
    const auto is_joules = [](const search::Cost& cost) { return cost.quantity == search::Quantity::joules; };
    if (std::any_of(config.costs.begin(), config.costs.end(), is_joules)) {
        return "search.objective";
    }
    const bool is_limited = std::any_of(config.limits.begin(), config.limits.end(),
                                        [&](const search::Limit& limit) { return is_joules(limit.cost); });
    return is_limited ? "search.limits" : "";
}

data::Options data_options(const config::Config& config) {
    return config::trial_recipes(config).front().data;
}

void check_data(const config::Config& config, const data::Datasets& datasets) {
    const data::Dataset& images = datasets.training;
    const train::Recipe recipe = config::trial_recipes(config).front();
    const data::Split split = data::split(recipe.data, images, config.seed);  // throws if no training samples are left
    static_cast<void>(data::shares_of(recipe.data, images, split));  // throws if a weight gives a system no samples
    static_cast<void>(train::class_weights(recipe.training, images, split.training));
    config::check_models(config, {images.height, images.width, images.channels}, images.outputs());
}

namespace {

/// Returns the normalisation as text: "; normalised by mean 0.1307 and deviation 0.3081". Empty if the configuration
/// contains these numbers.
std::string normalisation_text(const data::Options& options, const data::Dataset& training) {
    if (!data::needs_moments(options)) {
        return "";
    }
    const data::Normalisation used = data::normalisation_of(options, training);
    return fmt::format("; normalised by mean {:.6g} and deviation {:.6g}", fmt::join(used.mean, ", "),
                       fmt::join(used.deviation, ", "));
}

}  // namespace

std::string data_text(const config::Config& config, const data::Datasets& datasets) {
    const data::Dataset& images = datasets.training;
    const data::Options options = data_options(config);
    const data::Split split = data::split(options, images, config.seed);
    const std::string answers = images.targets.empty() ? fmt::format("in {} classes", images.classes)
                                                       : fmt::format("with targets of size {}", images.target_size);
    const std::int64_t tests = datasets.test.samples();
    const std::string names = data::class_names_text(images);
    return fmt::format("{} of {} x {} x {} {}: {} train, {} validate; {}", counted(images.samples(), "image"),
                       images.height, images.width, images.channels, answers, split.training.size(),
                       split.validation.size(),
                       tests > 0 ? fmt::format("{} more test the best model", tests) : "there is no test set") +
           normalisation_text(options, images) + (names.empty() ? "" : "; classes: " + names);
}

std::vector<std::string> systems_lines(const config::Config& config, const data::Datasets& datasets) {
    const data::Options options = data_options(config);
    const data::Dataset& images = datasets.training;
    const data::Split split = data::split(options, images, config.seed);
    const std::vector<data::SystemShare> shares = data::shares_of(options, images, split);
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < options.systems.size(); ++i) {
        const auto size = [i](const data::Elements<std::int64_t>& ends) {
            return ends.empty() ? 0 : ends[i] - (i == 0 ? 0 : ends[i - 1]);
        };
        lines.push_back(fmt::format("system {}: {}, {} of them train; {} of the {} samples of an epoch; {} test",
                                    options.systems[i].path, counted(size(images.system_ends), "image"),
                                    shares[i].end - shares[i].begin, shares[i].samples, split.training.size(),
                                    size(datasets.test.system_ends)));
    }
    return lines;
}

std::vector<std::string> data_warnings(const config::Config& config, const data::Datasets& datasets) {
    const data::Dataset& training = datasets.training;
    const data::Options options = data_options(config);
    std::vector<std::string> warnings;
    const data::Split split = data::split(options, training, config.seed);
    std::string labels = data::untrained_labels_text(training, datasets.test, split);
    if (!labels.empty()) {
        warnings.push_back("labels: " + std::move(labels));
    }
    std::vector<std::size_t> constant;
    for (std::size_t channel = 0; channel < training.measured_deviation.size(); ++channel) {
        if (training.measured_deviation[channel] == 0) {
            constant.push_back(channel);
        }
    }
    if (options.deviation.empty() && !constant.empty()) {
        warnings.push_back(
            fmt::format("data.normalize.deviation: auto: channel {} is the same in all pixels that train, and is "
                        "divided by 1",
                        fmt::join(constant, ", ")));
    }
    return warnings;
}

}  // namespace finch::run
