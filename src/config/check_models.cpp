#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"
#include "finch/config/trial_genomes.hpp"

#include "genes.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace finch::config {
namespace {

constexpr std::size_t most_corners = 1024;
constexpr std::size_t random_trials = 1000;
constexpr int most_trials = 10000;  // with constraints; initial_design.cpp checks that one of so many obeys them

/// Returns all combinations of the genes' extremes if there are at most `most_corners`. If there are more, returns the
/// genomes with all genes lowest, with all genes highest, and with one gene at an extreme and all others lowest.
std::vector<search::Genome> corners(const search::Space& space) {
    std::vector<std::vector<double>> values;
    std::size_t combinations = 1;
    search::Genome lowest;
    search::Genome highest;
    for (const search::Gene& gene : space.genes) {
        values.push_back(trial_values(gene));
        combinations = std::min(combinations * values.back().size(), most_corners + 1);
        lowest.push_back(values.back().front());
        highest.push_back(search::snap(gene, std::numeric_limits<double>::infinity()));
    }
    std::vector<search::Genome> genomes{lowest, highest};
    if (combinations > most_corners) {
        for (std::size_t gene = 0; gene < space.size(); ++gene) {
            for (const double value : values[gene]) {
                genomes.push_back(lowest);
                genomes.back()[gene] = value;
            }
        }
        return genomes;
    }
    genomes.assign(1, {});
    for (const auto& options : values) {
        std::vector<search::Genome> longer;
        for (const search::Genome& genome : genomes) {
            for (const double option : options) {
                longer.push_back(genome);
                longer.back().push_back(option);
            }
        }
        genomes = std::move(longer);
    }
    return genomes;
}

/// The genome that failed at the deepest layer, and the reason why it gives no valid network.
struct Reason {
    std::int64_t layer = -2;
    std::string text;
    search::Genome genome;
};

/// The number of parameters of a network, and the first limit that it breaks, or null.
struct Size {
    std::int64_t parameters = 0;
    const search::Limit* broken = nullptr;
};

/// Returns the size of the network with the genes of `genome`. Throws ConfigError if no such network exists.
Size size_of(const Config& config, const search::Genome& genome, nn::SampleShape sample, std::int64_t classes) {
    const std::int64_t parameters = nn::plan_model(config.recipe(genome, 0).model, sample, classes, 1).parameters;
    return {parameters,
            search::broken_limit(config.limits, search::Quantity::parameters, static_cast<double>(parameters))};
}

}  // namespace

std::vector<search::Genome> trial_genomes(const Config& config) {
    std::vector<search::Genome> genomes;
    const auto add = [&](search::Genome genome) {
        genome = search::canonical(config.space, std::move(genome));
        if (search::all_hold(config.constraints, config.space, genome)) {
            genomes.push_back(std::move(genome));
        }
    };
    for (search::Genome& corner : corners(config.space)) {
        add(std::move(corner));
    }
    const std::size_t enough = genomes.size() + random_trials;
    RandomStream random(config.seed, Purpose::breeding);
    for (int trial = 0; trial < most_trials && genomes.size() < enough && config.space.size() > 0; ++trial) {
        add(search::random_genome(config.space, random));
    }
    return genomes;
}

std::vector<train::Recipe> trial_recipes(const Config& config) {
    std::vector<train::Recipe> recipes;
    std::string problem;
    for (const search::Genome& genome : trial_genomes(config)) {
        try {
            recipes.push_back(config.recipe(genome, 0));
        } catch (const ConfigError& error) {
            problem = error.what();
        }
    }
    if (recipes.empty()) {
        throw ConfigError(problem);
    }
    return recipes;
}

bool can_exist(const Config& config, const search::Genome& genome, nn::SampleShape sample, std::int64_t classes) {
    try {
        return size_of(config, genome, sample, classes).broken == nullptr;
    } catch (const ConfigError&) {
        return false;
    }
}

void check_models(const Config& config, nn::SampleShape sample, std::int64_t classes) {
    Reason best;
    const search::Limit* broken = nullptr;
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    const auto fits = [&](const search::Genome& genome) {
        try {
            const Size size = size_of(config, genome, sample, classes);
            broken = size.broken != nullptr ? size.broken : broken;
            fewest = std::min(fewest, size.parameters);
            return size.broken == nullptr;
        } catch (const ConfigError& error) {
            const auto* model = dynamic_cast<const nn::ModelError*>(&error);
            const std::int64_t layer = model == nullptr ? -1 : model->layer();
            if (layer > best.layer) {
                best = {layer, error.what(), genome};
            }
            return false;
        }
    };
    const std::vector<search::Genome> genomes = trial_genomes(config);
    for (const search::Genome& genome : genomes) {
        if (fits(genome)) {
            return;
        }
    }
    if (broken != nullptr) {
        throw ConfigError(
            fmt::format("search.limits: '{}' is broken by all {} networks that were tried; the smallest has "
                        "{} parameters; accepted: a limit that some networks keep",
                        broken->text, genomes.size(), fewest));
    }
    throw ConfigError(fmt::format(
        "{}; so no network of this configuration can exist for samples of {} x {} x {} and {} outputs{}", best.text,
        sample.height, sample.width, sample.channels, classes,
        config.space.size() == 0 ? ""
                                 : fmt::format(" ({} genomes tried; the one that came furthest: {})", genomes.size(),
                                               search::genome_text(config.space, best.genome))));
}

}  // namespace finch::config
