#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/synonyms.hpp"

#include "search_section.hpp"

#include <algorithm>

namespace finch::config {
namespace {

using search::Quantity;

/// Returns the quantities that the results of a search have besides the loss.
std::vector<Quantity> measured(const Config& config) {
    if (config.trains()) {
        return {Quantity::accuracy, Quantity::f1, Quantity::parameters, Quantity::seconds, Quantity::joules};
    }
    const bool is_program = std::holds_alternative<CommandObjective>(config.objective);
    return is_program ? std::vector{Quantity::accuracy, Quantity::seconds, Quantity::joules, Quantity::metric}
                      : std::vector<Quantity>();
}

/// Returns whether a report has a folder's name in place of this metric (evaluate/report_line.hpp).
bool is_checkpoint(const search::Cost& cost) {
    return cost.quantity == Quantity::metric && cost.metric == "checkpoint";
}
constexpr const char* no_metric = "is the folder of a checkpoint in a report (search.inherit), and no metric";

bool is_only_maximised(Quantity quantity) {
    return quantity == Quantity::accuracy || quantity == Quantity::f1;
}

/// Returns the names of costs as they are written: "-accuracy", "joules", "metric.NAME", "-metric.NAME".
std::vector<std::string> cost_names(const Config& config) {
    std::vector<std::string> names;
    for (const Quantity quantity : measured(config)) {
        const std::string name(word(quantity));
        if (quantity == Quantity::metric) {
            names.insert(names.end(), {name + ".NAME", "-" + name + ".NAME"});
        } else {
            names.push_back(is_only_maximised(quantity) ? "-" + name : name);
        }
    }
    return names;
}

/// Reads all items of the list `written` but the first, which is the loss.
void read_costs(const Tree& written, const std::string& path, Config& config) {
    const std::vector<Quantity> all = measured(config);
    const auto is_measured = [&](Quantity quantity) {
        return std::find(all.begin(), all.end(), quantity) != all.end();
    };
    const std::vector<std::string> names = cost_names(config);
    std::size_t of_epochs = 0;
    for (std::size_t i = 1; i < written.items.size(); ++i) {
        const Tree& item = written.items[i];
        auto cost = search::parse_cost(item.text);
        const auto refuse = [&](const std::string& why, const std::string& accepted) {
            fail(item, path_of(path, i), fmt::format("'{}' {}; accepted: {}", item.text, why, accepted));
        };
        if (enumerator<LossObjective>(item.text) || (cost && cost->quantity == Quantity::loss)) {
            refuse("is a loss, and only the first objective is one", join(names));
        }
        if (!cost || !is_measured(cost->quantity)) {
            refuse(fmt::format("is no cost of {}{}", config.trains() ? "networks" : "programs",
                               did_you_mean(item.text, names)),
                   join(names));
        }
        if (is_checkpoint(*cost)) {
            refuse(no_metric, "another name");
        }
        if (is_only_maximised(cost->quantity) && !cost->is_maximised) {
            refuse("would be minimised", "-" + item.text);
        }
        cost->place = search::is_of_epochs(cost->quantity) ? of_epochs++ : 0;
        const auto is_same = [&](const search::Cost& other) { return to_text(other) == to_text(*cost); };
        if (std::any_of(config.costs.begin(), config.costs.end(), is_same)) {
            refuse("is listed twice", "each objective once");
        }
        config.costs.push_back(std::move(*cost));
    }
}

}  // namespace

void read_objectives(const Tree& written, Config& config) {
    const auto loss = enumerator<LossObjective>(written.items.front().text);
    if (!loss) {
        fail(written.items.front(), "search.objective[0]",
             fmt::format("'{}' is no loss of networks, and the first objective must be one; accepted: {}",
                         written.items.front().text, join(all_words<LossObjective>())));
    }
    config.objective = *loss;
    read_costs(written, "search.objective", config);
}

void read_program_objectives(const Tree& written, Config& config) {
    const std::string path = "search.objective.objectives";
    if (written.items.front().text != word(Quantity::loss)) {
        fail(written.items.front(), path_of(path, std::size_t{0}),
             fmt::format("'{}' is not the reported loss, and the first objective must be it; accepted: loss",
                         written.items.front().text));
    }
    read_costs(written, path, config);
}

void read_limits(const Tree& written, Config& config) {
    const std::vector<Quantity> all = measured(config);
    for (std::size_t i = 0; i < written.items.size(); ++i) {
        const Tree& item = written.items[i];
        const auto refuse = [&](const std::string& why) {
            fail(item, path_of("search.limits", i), fmt::format("'{}': {}", item.text, why));
        };
        try {
            config.limits.push_back(search::parse_limit(item.text));
        } catch (const ConfigError& error) {
            refuse(error.what());
        }
        const Quantity quantity = config.limits.back().cost.quantity;
        if (quantity != Quantity::loss && std::find(all.begin(), all.end(), quantity) == all.end()) {
            std::vector<std::string> names{"loss"};
            for (const Quantity one : all) {
                names.push_back(one == Quantity::metric ? "metric.NAME" : std::string(word(one)));
            }
            const bool is_program = std::holds_alternative<CommandObjective>(config.objective);
            refuse(fmt::format("results of {} have no {}; accepted: {}",
                               config.trains() ? "networks"
                               : is_program    ? "programs"
                                               : "functions",
                               quantity == Quantity::metric ? "metrics" : word(quantity), join(names)));
        }
        if (is_checkpoint(config.limits.back().cost)) {
            refuse(fmt::format("metric.checkpoint {}; accepted: another name", no_metric));
        }
        if (search::is_of_epochs(quantity) && !config.reuse.empty()) {
            refuse("the results of search.reuse have no f1 and no metrics; accepted: search.reuse: none");
        }
    }
}

void check_objectives(const Tree& search, const Config& config) {
    if (config.costs.empty()) {
        return;
    }
    const auto refuse = [&](const std::string& key, const std::string& accepted) {
        fail(search[key], "search." + key,
             fmt::format("supports one objective, but the search has {}; accepted: {}", config.costs.size() + 1,
                         accepted));
    };
    constexpr const char* propagators = "auto, evolution, genetic, random, screened";
    if (config.islands.empty() && !search::supports_costs(config.propagator)) {
        refuse("propagator", propagators);
    }
    if (!std::all_of(config.islands.begin(), config.islands.end(),
                     [](const IslandOptions& island) { return search::supports_costs(island.propagator); })) {
        refuse("islands", propagators);
    }
    if (config.duplicates == search::Duplicates::reuse) {
        refuse("duplicates", "breed, train");
    }
    if (!config.reuse.empty()) {
        refuse("reuse", "none");
    }
    if (std::holds_alternative<search::CurveOptions>(config.pruning)) {
        refuse("pruning", "none, halving, median");
    }
    const bool has_joules = std::any_of(config.costs.begin(), config.costs.end(),
                                        [](const search::Cost& cost) { return cost.quantity == Quantity::joules; });
    if (has_joules && search::prunes(config.pruning) && !config.trains()) {
        fail(search["pruning"], "search.pruning",
             "compares joules at rungs, but the joules of a program are known only at its end; accepted: none, or "
             "seconds instead of joules in search.objective.objectives");
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
                 fmt::format("{{{}}} has another meaning in commands; accepted: a name other than {}", gene.name,
                             join(std::vector<std::string>(taken.begin(), taken.end()))));
        }
    }
    if (std::holds_alternative<search::CurveOptions>(config.pruning) && objective.epochs == 0) {
        fail(search["pruning"], "search.pruning",
             "curve predicts the loss of the last epoch, but search.objective.epochs is not set; accepted: "
             "search.objective.epochs, or another rule");
    }
    const bool is_blank = objective.command.find_first_not_of(" \t\r\n") == std::string::npos;
    try {
        static_cast<void>(split_command(objective.shell && !is_blank ? "sh" : objective.command));
    } catch (const ConfigError& error) {
        fail(search["objective"]["command"], "search.objective.command", error.what());
    }
}

}  // namespace finch::config
