#include "finch/run/first_guesses.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/base/words.hpp"
#include "finch/config/tree.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace finch::run {
namespace {

using config::Tree;

/// Returns the option nearest to `number`; nothing if no option is a number.
std::optional<double> nearest_option(const search::ChoiceGene& gene, double number) {
    std::optional<double> best;
    double least = 0;
    for (std::size_t i = 0; i < gene.options.size(); ++i) {
        const auto option = parsed<double>(gene.options[i]);
        if (option && std::isfinite(*option) && (!best || std::abs(*option - number) < least)) {
            best = static_cast<double>(i);
            least = std::abs(*option - number);
        }
    }
    return best;
}

/// Returns the value of `gene` nearest to `text`, the value of the gene with the same name in another run. Returns
/// nothing if `text` is not a value of `gene` and cannot be compared with its values as a number.
std::optional<double> nearest_value(const search::Gene& gene, const std::string& text) {
    if (const auto value = search::value_in(gene, text)) {
        return value;
    }
    const auto number = parsed<double>(text);
    if (!number) {
        return std::nullopt;
    }
    const auto* const choice = std::get_if<search::ChoiceGene>(&gene.kind);
    return choice != nullptr ? nearest_option(*choice, *number) : std::optional(search::snap(gene, *number));
}

/// Returns the genes of one individual of another run as a guess. `who`: the individual's name for the notes. The guess
/// is empty if the individual has no gene of this space.
Tree guess_of(const search::Individual& one, const search::Space& its_space, const search::Space& space,
              const std::string& who, std::vector<std::string>& notes) {
    Tree guess{.kind = Tree::Kind::map};
    std::vector<std::string> changes;
    const std::vector<bool> active = search::active_genes(its_space, one.genome);
    for (const search::Gene& gene : space.genes) {
        const int index = its_space.index_of(gene.name);
        const auto at = static_cast<std::size_t>(index);
        if (index < 0 || !active[at]) {
            continue;
        }
        const std::string text = search::value_text(its_space.genes[at], one.genome[at]);
        const auto value = nearest_value(gene, text);
        const std::string now = value ? search::value_text(gene, *value) : "at random";
        if (now != text) {
            changes.push_back(fmt::format("{}: {} → {}", gene.name, text, now));
        }
        if (value) {
            guess.keys.push_back(gene.name);
            guess.items.push_back({.kind = Tree::Kind::scalar, .text = now, .quoted = now == "null" || now == "~"});
        }
    }
    if (!changes.empty()) {
        notes.push_back(
            fmt::format("search.first: {} has values that this space has not: {}", who, fmt::join(changes, ", ")));
    }
    return guess;
}

/// Returns the best individuals of the run that have different genomes.
std::vector<const search::Individual*> best_of(const search::Population& population, int count) {
    std::vector<const search::Individual*> best;
    std::set<search::Genome> known;
    for (const search::Individual* one : population.best(0, population.size())) {
        if (std::ssize(best) < count && known.insert(one->genome).second) {
            best.push_back(one);
        }
    }
    return best;
}

Tree guesses_of_run(const std::string& run, int count, const search::Space& space, std::vector<std::string>& notes) {
    const store::RunDirectory directory(run);
    auto recovered = store::recover(directory, OnDamage::leave, store::Curves::leave);
    if (!recovered) {
        throw ConfigError(fmt::format("search.first.run: {}: {}", run, store::no_run_text(directory)));
    }
    const search::Space its_space = config::parse(recovered->facts.config, run).space;
    recovered->adopt(its_space);
    search::Population population(search::ExchangeKind::none, 1);
    recovered->move_into(population);
    Tree guesses{.kind = Tree::Kind::list};
    for (const search::Individual* one : best_of(population, count)) {
        Tree guess = guess_of(*one, its_space, space, fmt::format("individual {} of {}", to_text(one->id), run), notes);
        if (!guess.items.empty()) {
            guesses.items.push_back(std::move(guess));
        }
    }
    if (guesses.items.empty()) {
        std::vector<std::string> names;
        for (const search::Gene& gene : space.genes) {
            names.push_back(gene.name);
        }
        throw ConfigError(fmt::format("search.first.run: {}: {}", run,
                                      population.best() == nullptr
                                          ? "no individual of this run has been evaluated"
                                          : "none of its genes has a name of these: " + join(names)));
    }
    return guesses;
}

/// Returns the guesses with which the resumed run began, if `search.first` has not changed. A run writes its guesses to
/// its configuration file before it breeds.
std::optional<Tree> guesses_of_before(const config::Config& config, const RunOptions& options, long long restarts) {
    const store::RunDirectory directory(run_directory_of(config, options));
    const bool begins_anew = options.fresh && restarts == 0;
    if (begins_anew || !directory.holds_a_run() || !std::filesystem::is_regular_file(directory.config())) {
        return std::nullopt;
    }
    const config::Config before = config::load(directory.config());
    if (before.first.run != config.first.run || before.first.best != config.first.best ||
        before.first.guesses.empty()) {
        return std::nullopt;
    }
    return config::parse_yaml(before.text(), directory.config().string())["search"]["first"]["guesses"];
}

}  // namespace

config::Config with_first_guesses(config::Config config, const RunOptions& options, long long restarts,
                                  std::vector<std::string>& notes) {
    if (!config.first.run || !config.first.guesses.empty()) {
        return config;
    }
    auto guesses = guesses_of_before(config, options, restarts);
    if (!guesses) {
        guesses = guesses_of_run(*config.first.run, config.first.best, config.space, notes);
        notes.push_back(fmt::format("search.first: {} guesses from {}", guesses->items.size(), *config.first.run));
    }
    return config::parse(config.text(), "search.first of " + *config.first.run,
                         {"search.first.guesses=" + config::emit(*guesses)});
}

}  // namespace finch::run
