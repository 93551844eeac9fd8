#include "finch/app/follow.hpp"
#include "finch/app/verbs.hpp"
#include "finch/base/format.hpp"
#include "finch/base/run_state.hpp"
#include "finch/base/terminal.hpp"
#include "finch/base/words.hpp"
#include "finch/evaluate/command_line.hpp"
#include "finch/report/individual.hpp"
#include "finch/report/json.hpp"
#include "finch/report/tables.hpp"
#include "finch/run/summary.hpp"

#include <algorithm>

namespace finch::app {
namespace {

/// Returns the shell command that evaluates an individual again: the program with the same genes and seed, in a new
/// folder, or for an heir or several ranks the replay. Empty if the objective is not a program.
std::string command_text(const config::Config& config, const std::filesystem::path& run,
                         const search::Individual& individual) {
    const auto* const command = std::get_if<config::CommandObjective>(&config.objective);
    if (command == nullptr) {
        return "";
    }
    if (individual.is_heir() || (individual.ranks > 1 && command->launch == config::Launch::ranks)) {
        return fmt::format("evaluate it again{}:\n  {}finch replay {} {}\n",
                           individual.is_heir() ? ", with its ancestors" : "",
                           individual.ranks > 1 ? fmt::format("mpirun -n {} ", individual.ranks) : "",
                           shell_argument(run.string()), to_text(individual.id));
    }
    evaluate::TemplateTexts files;
    for (const auto& [name, path] : command->files) {
        files.emplace(name, "");
    }
    const evaluate::CommandLine line(*command, config.space, config.seed, files, std::filesystem::current_path());
    const std::filesystem::path folder = std::filesystem::absolute("again-" + to_text(individual.id));
    const evaluate::CommandLine::Paths paths{std::filesystem::absolute(run), folder, false, individual.node,
                                             folder.string() + ".hosts"};
    std::vector<std::string> words;
    for (const auto& [name, value] : line.variables(individual, paths)) {
        words.push_back(quoted_for_shell(fmt::format("{}={}", name, value)));
    }
    for (const std::string& argument : line.arguments(individual, paths)) {
        words.push_back(quoted_for_shell(argument));
    }
    std::string given = line.json(individual, paths);
    given.pop_back();  // the newline
    const std::string place = quoted_for_shell(folder.string());
    const std::string hostfile =
        line.uses("hostfile") ? fmt::format("echo {} slots={} >{}.hosts && ", individual.node, individual.ranks, place)
                              : "";
    return fmt::format("evaluate it again{}:\n  mkdir -p {}/{} && {}cd {} && printf '%s\\n' {} | env {}\n",
                       files.empty() ? "" : ", once the files of search.objective.files are there", place,
                       config::checkpoints_folder, hostfile, place, quoted_for_shell(given), fmt::join(words, " "));
}

std::string show_text(const ShowOptions& options) {
    const auto [recovered, config, competition] = read_run(options.run);
    const std::string name = options.run.string();
    if (!options.id.empty()) {
        const search::Id id = search::parse_id(options.id);
        if (options.json) {
            const auto recipe = [&config = config](const search::Genome& genome) { return config.recipe_json(genome); };
            return report::individual_json(recovered, config.space, config.measure, id,
                                           config.trains() ? recipe : report::RecipeJson());
        }
        search::Population population(search::ExchangeKind::none, 1);
        recovered.merge_into(population);
        const search::Individual* const one = population.find(id);
        return report::individual_text(recovered, store::RunDirectory(options.run), id, config.measure) +
               (one != nullptr ? command_text(config, options.run, *one) : "");
    }
    if (options.csv) {
        return report::csv(recovered, competition);
    }
    const store::RunDirectory directory(options.run);
    search::Population population(competition.exchange, std::max(1, recovered.facts.islands), competition.costs);
    recovered.merge_into(population);
    if (options.json) {
        return report::run_json(recovered, config.space, competition, name, options.top.count,
                                run::statistics_of(directory, config, population, recovered.facts));
    }
    return report::overview(recovered, name, options.top, competition) + "\n" +
           run::summary_of(directory, config, population, recovered.facts);
}

}  // namespace

int show(const ShowOptions& options) {
    if (options.follow) {
        return follow(options);
    }
    const std::string text = show_text(options);
    fmt::print("{}", options.csv || options.json ? text : with_bold_headings(text, terminal()));
    return exit_done;
}

}  // namespace finch::app
