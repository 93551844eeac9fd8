#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/config.hpp"
#include "finch/config/synonyms.hpp"
#include "finch/config/tree.hpp"

#include "bind.hpp"
#include "search_section.hpp"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace finch::config {
namespace {

/// Throws ConfigError if heirs cannot change the genes `move`. `written`: the list.
void check_moved_genes(const std::vector<std::string>& move, const search::Space& space, const Tree& written) {
    std::vector<std::string> all;
    std::vector<std::string> movable;
    for (const search::Gene& gene : space.genes) {
        all.push_back(gene.name);
        if (!search::is_fixed(gene)) {
            movable.push_back(gene.name);
        }
    }
    for (std::size_t i = 0; i < move.size(); ++i) {
        const auto refuse = [&](const std::string& why, const std::string& accepted) {
            fail(written.items.at(i), path_of("search.inherit.move", i),
                 fmt::format("'{}' {}; accepted: {}", move[i], why, accepted));
        };
        const std::string accepted = movable.empty() ? "none, as no gene has several values" : join(movable);
        if (std::ranges::find(all, move[i]) == all.end()) {
            refuse("is no gene" + did_you_mean(move[i], movable), accepted);
        }
        if (std::ranges::find(movable, move[i]) == movable.end()) {
            refuse("has a single value, so heirs cannot change it", accepted);
        }
        if (std::ranges::find(move, move[i]) != std::ranges::next(move.begin(), static_cast<std::ptrdiff_t>(i))) {
            refuse("is listed twice", "each gene once");
        }
    }
}

/// Throws ConfigError if heirs cannot continue the programs of `command`. `written`: the section search.inherit.
void check_heirs_of_programs(const CommandObjective& command, const Config& config, const Tree& written) {
    const std::vector<std::string>& move = config.inherit->move;
    if (command.persistent) {
        fail(written, "search.inherit",
             "starts the program with the checkpoint of its parent, and a persistent program is started only once; "
             "accepted: search.objective.persistent: false, or none here");
    }
    if (command.epochs == 0) {
        fail(
            written, "search.inherit",
            "needs search.objective.epochs, the number of epochs of a complete evaluation; accepted: that key, or none "
            "here");
    }
    if (move.empty()) {
        fail(
            written, "search.inherit",
            "needs the key move, the genes that the program can change when it continues a checkpoint; accepted: move: "
            "[lr], for example");
    }
    check_moved_genes(move, config.space, written["move"]);
}

}  // namespace

void resolve_inherit(const Tree& search, Config& config) {
    if (!config.inherit) {
        return;
    }
    if (std::holds_alternative<FunctionObjective>(config.objective)) {
        fail(search["inherit"], "search.inherit",
             "continues trainings of networks and programs, and a function has none; accepted: none");
    }
    const auto* const command = std::get_if<CommandObjective>(&config.objective);
    if (command != nullptr) {
        check_heirs_of_programs(*command, config, search["inherit"]);
    } else if (!config.inherit->move.empty()) {
        fail(search["inherit"]["move"], "search.inherit.move",
             "is for programs: Finch knows which genes of a network can change; accepted: none");
    }
    const auto rungs = search::rungs_of(config.pruning);
    if (!rungs) {
        fail(search["inherit"], "search.inherit",
             "replaces trainings that end at a rung, and search.pruning has none; accepted: search.pruning halving or "
             "median, or none here");
    }
    if (!config.costs.empty()) {
        fail(
            search["inherit"], "search.inherit",
            "ranks the parents by the loss, and search.objective has several values; accepted: none, or one objective");
    }
    if (command != nullptr && rungs->passed(command->epochs - 1) == 0) {
        fail(search["inherit"], "search.inherit",
             fmt::format("needs a rung before the last epoch, but the first rung is epoch {} of {}; accepted: a larger "
                         "search.objective.epochs, or none here",
                         rungs->first_epoch, command->epochs));
    }
    config.inherit->rungs = *rungs;
}

}  // namespace finch::config
