#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/config/tables.hpp"

#include "sections.hpp"

namespace finch::config {

Objective read_objective(const Tree& tree) {
    if (tree.kind == Tree::Kind::scalar) {
        return word_of<LossObjective>(tree, words::objectives);
    }
    const search::Function& function = search::find_function(tree["function"].text);
    FunctionObjective objective{function.name, function.default_dimensions, real_of(tree["seconds"]),
                                real_of(tree["spread"])};
    if (const auto dimensions = optional_whole_of(tree["dimensions"])) {
        objective.dimensions = static_cast<int>(*dimensions);
    }
    if (!function.any_dimensions && objective.dimensions != function.default_dimensions) {
        fail(tree["dimensions"], "search.objective.dimensions",
             fmt::format("{} has {} dimensions and no other number", function.name, function.default_dimensions));
    }
    try {
        (void)search::function_space(function, objective.dimensions);
    } catch (const ConfigError& error) {
        fail(tree["dimensions"], "search.objective.dimensions", error.what());
    }
    return objective;
}

search::PropagatorOptions read_propagator(const Tree& tree) {
    if (tree.kind == Tree::Kind::scalar) {
        return search::RandomSearchOptions{};  // the only propagator without keys
    }
    const Tree& genetic = tree.items.front();
    return search::GeneticOptions{.population = whole_of(genetic["population"]),
                                  .crossover = real_of(genetic["crossover"]),
                                  .mutation = real_of(genetic["mutation"]),
                                  .random = real_of(genetic["random"]),
                                  .sigma = real_of(genetic["sigma"])};
}

search::ExchangeOptions read_exchange(const Tree& tree) {
    return {.kind = word_of<search::ExchangeKind>(tree["kind"], words::exchange_kinds),
            .topology = word_of<search::Topology>(tree["topology"], words::topologies),
            .probability = real_of(tree["probability"]),
            .migrants = whole_of(tree["migrants"])};
}

island::Budget read_budget(const Tree& tree) {
    const island::Budget budget{.evaluations = optional_whole_of(tree["evaluations"]),
                                .generations = optional_whole_of(tree["generations"]),
                                .hours = real_number(tree["hours"]),
                                .node_hours = real_number(tree["node_hours"]),
                                .target_loss = real_number(tree["target_loss"])};
    if (!budget.evaluations && !budget.generations && !budget.hours && !budget.node_hours && !budget.target_loss) {
        fail(tree, "search.budget",
             "never ends; accepted: at least one of evaluations, generations, hours, node_hours, target_loss with a "
             "number");
    }
    return budget;
}

Workers read_workers(const Tree& tree) {
    Workers workers;
    workers.ranks = int_of(tree["ranks"]);
    const Tree& islands = tree["islands"];
    for (const Tree& size : islands.items) {
        workers.island_sizes.push_back(int_of(size));
    }
    workers.islands = islands.items.empty() ? int_of(islands) : static_cast<int>(islands.items.size());
    workers.slots = int_of(tree["slots"]);
    workers.threads = static_cast<int>(optional_whole_of(tree["threads"]).value_or(0));
    workers.device = word_of<DeviceChoice>(tree["device"], words::devices);
    workers.communicator = word_of<CommunicatorChoice>(tree["communicator"], words::communicators);
    workers.share_device = flag_of(tree["share_device"]);
    workers.timeout_seconds = real_of(tree["timeout_seconds"]);
    return workers;
}

Checkpoint read_checkpoint(const Tree& tree) {
    return {.archive_seconds = real_of(tree["archive_seconds"]), .training_seconds = real_of(tree["training_seconds"])};
}

LogOptions read_log(const Tree& tree) {
    return {.level = word_of<LogLevel>(tree["level"], words::log_levels),
            .ranks = word_of<LogRanks>(tree["ranks"], words::log_ranks),
            .path = tree["path"].text,
            .interval_seconds = real_of(tree["interval_seconds"])};
}

}  // namespace finch::config
