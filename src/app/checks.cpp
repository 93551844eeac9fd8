#include "finch/app/checks.hpp"

#include "finch/app/given.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/config/trial_genomes.hpp"
#include "finch/train/class_weights.hpp"

namespace finch::app {

void check_search(const config::Config& config, const std::optional<std::vector<std::string>>& genes) {
    if (!genes && config.space.size() == 0) {
        throw ConfigError(
            "search.space: a search needs at least one gene; finch train trains one individual without a search");
    }
    if (genes) {
        static_cast<void>(given_genome(config.space, *genes));  // says what is wrong with the genes
    }
}

data::Options data_options(const config::Config& config) {
    return config::trial_recipes(config).front().data;
}

void check_data(const config::Config& config, const data::Datasets& datasets) {
    const data::Dataset& images = datasets.training;
    const train::Recipe recipe = config::trial_recipes(config).front();
    const data::Split split = data::split(recipe.data, images, config.seed);  // refuses what leaves nothing to train on
    static_cast<void>(train::class_weights(recipe.training, images, split.training));
    config::check_models(config, {images.height, images.width, images.channels}, images.outputs());
}

std::string data_text(const config::Config& config, const data::Datasets& datasets) {
    const data::Dataset& images = datasets.training;
    const data::Split split = data::split(data_options(config), images, config.seed);
    const std::string answers = images.targets.empty() ? fmt::format("in {} classes", images.classes)
                                                       : fmt::format("with {} numbers each", images.target_size);
    const std::int64_t tests = datasets.test.samples();
    return fmt::format("{} images of {} x {} x {} {}: {} train, {} validate; {}", images.samples(), images.height,
                       images.width, images.channels, answers, split.training.size(), split.validation.size(),
                       tests > 0 ? fmt::format("{} more test the best model", tests) : "there is no test set");
}

}  // namespace finch::app
