#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include "search_section.hpp"

#include <algorithm>

namespace finch::config {

void read_objectives(const Tree& written, Config& config) {
    const auto loss = enumerator<LossObjective>(written.items.front().text);
    if (!loss) {
        fail(written.items.front(), "search.objective[0]",
             fmt::format("'{}' is what networks cost, and stands behind what they are trained for; accepted: {}",
                         written.items.front().text, join(all_words<LossObjective>())));
    }
    config.objective = *loss;
    for (std::size_t i = 1; i < written.items.size(); ++i) {
        const Tree& item = written.items[i];
        const auto cost = enumerator<search::Cost>(item.text);
        if (!cost || std::find(config.costs.begin(), config.costs.end(), *cost) != config.costs.end()) {
            fail(item, path_of("search.objective", i),
                 fmt::format("'{}' {}; accepted: each of {} once", item.text,
                             cost ? "stands there twice" : "is a loss, of which there is one, the first",
                             join(all_words<search::Cost>())));
        }
        config.costs.push_back(*cost);
    }
}

void check_objectives(const Tree& search, const Config& config) {
    if (config.costs.empty()) {
        return;
    }
    const auto refuse = [&](const std::string& key, const std::string& accepted) {
        fail(search[key], "search." + key,
             fmt::format("knows one objective, and search.objective names {}; accepted: {}", config.costs.size() + 1,
                         accepted));
    };
    const auto is_genetic = [](const search::PropagatorOptions& options) {
        return std::holds_alternative<search::GeneticOptions>(options);
    };
    if (config.islands.empty() && !is_genetic(config.propagator)) {
        refuse("propagator", "genetic");
    }
    if (!std::all_of(config.islands.begin(), config.islands.end(),
                     [&](const IslandOptions& island) { return is_genetic(island.propagator); })) {
        refuse("islands", "genetic on each");
    }
    if (config.duplicates == search::Duplicates::reuse) {
        refuse("duplicates", "breed, train");
    }
    if (!config.reuse.empty()) {
        refuse("reuse", "none");
    }
    if (search["pruning"].kind != Tree::Kind::scalar || search["pruning"].text != "none") {
        refuse("pruning", "none");
    }
    if (search["final"].kind != Tree::Kind::scalar) {
        refuse("final", "none");
    }
}

void check_command(const CommandObjective& objective, const Config& config, const Tree& search) {
    const auto& taken = names_of_evaluation;
    for (const search::Gene& gene : config.space.genes) {
        if (std::find(taken.begin(), taken.end(), gene.name) != taken.end()) {
            fail(search["space"][gene.name], path_of("search.space", gene.name),
                 fmt::format("{{{}}} stands for something else in a command; accepted: a name other than {}", gene.name,
                             join(std::vector<std::string>(taken.begin(), taken.end()))));
        }
    }
    if (std::holds_alternative<search::CurveOptions>(config.pruning) && objective.epochs == 0) {
        fail(search["pruning"], "search.pruning",
             "curve looks ahead to the last epoch; accepted: search.objective.epochs with their number, or another "
             "rule");
    }
    const bool is_blank = objective.command.find_first_not_of(" \t\r\n") == std::string::npos;
    try {
        static_cast<void>(split_command(objective.shell && !is_blank ? "sh" : objective.command));
    } catch (const ConfigError& error) {
        fail(search["objective"]["command"], "search.objective.command", error.what());
    }
}

}  // namespace finch::config
