#include "finch/app/verbs.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/run_state.hpp"
#include "finch/base/words.hpp"
#include "finch/evaluate/command_line.hpp"
#include "finch/report/individual.hpp"
#include "finch/report/json.hpp"
#include "finch/report/status.hpp"
#include "finch/report/tables.hpp"
#include "finch/run/summary.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace finch::app {
namespace {

constexpr double follow_seconds = 2;  ///< between two updates
constexpr double most_follow_seconds = 30;
constexpr std::size_t followed_workers = 20;  ///< number of workers whose trainings are shown

bool is_terminal() {
    return ::isatty(STDOUT_FILENO) == 1;
}

/// True if standard output is a terminal with colours and the user has not disabled them (https://no-color.org).
bool has_colours() {
    const auto variable = [](const char* name) {
        const char* const value = std::getenv(name);
        return std::string(value == nullptr ? "" : value);
    };
    return is_terminal() && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

/// Returns `text` with bold headings: the lines that are not indented.
std::string painted(const std::string& text) {
    if (!has_colours()) {
        return text;
    }
    std::istringstream lines(text);
    std::string out;
    for (std::string line; std::getline(lines, line);) {
        out += line.empty() || line.front() == ' ' ? line : "\033[1m" + line + "\033[0m";
        out += "\n";
    }
    return out;
}

/// Returns the text of a live update: the progress, the current trainings, and the best individuals.
std::string picture(const ShowOptions& options, const report::Status& status) {
    const auto [recovered, config, competition] = read_run(options.run);
    search::Population population(competition.exchange, std::max(1, recovered.facts.islands), competition.costs);
    recovered.merge_into(population);
    const double hourly = report::evaluations_per_hour(recovered.facts);
    const double left = static_cast<double>(status.budget_evaluations) - static_cast<double>(status.finished);
    std::string text = report::status_text(status) + "\n";
    text += hourly > 0 ? fmt::format("  {:.1f} evaluations per hour", hourly) : "";
    text += hourly > 0 && status.budget_evaluations >= 0 && left > 0
                ? fmt::format(", about {} left\n", duration_text(left / hourly * 3600))
                : "\n";
    return text + "  " + report::outcome_words(population) + "\n\n" +
           report::best_table(config.space, population, recovered.facts, options.top, config.measure.name) + "\n" +
           report::training_table(config.space, population, unix_seconds(), followed_workers) + "\n" +
           report::worker_table(recovered.facts);
}

/// Prints updates until the run has ended. On a terminal each update replaces the previous one; elsewhere each change
/// adds a line.
int follow(const ShowOptions& options) {
    std::string last;
    for (;;) {
        const double began = steady_seconds();
        const report::Status now = status_of(options.run);
        const bool ended = now.state != RunState::running;
        const std::string line = report::status_text(now);
        if (is_terminal()) {
            const std::string text = painted(picture(options, now));
            fmt::print("\033[H\033[J{}", text);
        } else if (line != last) {
            fmt::print("{}  {}\n", date_and_time(unix_seconds()), line);
        }
        std::fflush(stdout);
        last = line;
        if (ended) {
            return exit_done;
        }
        // Waits longer for a large run, because reading the run and checking the lock of another host take time.
        const double pause = std::clamp(10 * (steady_seconds() - began), follow_seconds, most_follow_seconds);
        std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    }
}

/// Returns the shell command that evaluates an individual again: the program with the same genes and seed, in a new
/// folder. Empty if the objective is not a program.
std::string command_text(const config::Config& config, const std::filesystem::path& run,
                         const search::Individual& individual) {
    const auto* const command = std::get_if<config::CommandObjective>(&config.objective);
    if (command == nullptr) {
        return "";
    }
    evaluate::TemplateTexts files;
    for (const auto& [name, path] : command->files) {
        files.emplace(name, "");
    }
    const evaluate::CommandLine line(*command, config.space, config.seed, files, std::filesystem::current_path());
    const std::filesystem::path folder = std::filesystem::absolute("again-" + to_text(individual.id));
    const evaluate::CommandLine::Paths paths{.run = std::filesystem::absolute(run), .folder = folder};
    std::vector<std::string> words;
    for (const auto& [name, value] : line.variables(individual, paths)) {
        words.push_back(quoted_for_shell(fmt::format("{}={}", name, value)));
    }
    for (const std::string& argument : line.arguments(individual, paths)) {
        words.push_back(quoted_for_shell(argument));
    }
    std::string given = line.json(individual, paths);
    given.pop_back();  // the newline
    return fmt::format("evaluate it again{}:\n  mkdir -p {}/{} && cd {} && printf '%s\\n' {} | env {}\n",
                       files.empty() ? "" : ", once the files of search.objective.files are there",
                       quoted_for_shell(folder.string()), config::checkpoints_folder, quoted_for_shell(folder.string()),
                       quoted_for_shell(given), fmt::join(words, " "));
}

std::string show_text(const ShowOptions& options) {
    const auto [recovered, config, competition] = read_run(options.run);
    const std::string name = options.run.string();
    if (!options.id.empty()) {
        const search::Id id = search::parse_id(options.id);
        if (options.json) {
            return report::individual_json(recovered, config.space, config.measure, id);
        }
        search::Population population(search::ExchangeKind::none, 1);
        recovered.merge_into(population);
        const search::Individual* const one = population.find(id);
        return report::individual_text(recovered, store::RunDirectory(options.run), id, config.measure) +
               (one != nullptr ? command_text(config, options.run, *one) : "");
    }
    if (options.json) {
        return report::run_json(recovered, config.space, competition, name, options.top.count);
    }
    if (options.csv) {
        return report::csv(recovered, competition);
    }
    std::string text = report::overview(recovered, name, options.top, competition);
    search::Population population(competition.exchange, std::max(1, recovered.facts.islands), competition.costs);
    recovered.merge_into(population);
    return text + "\n" + run::summary_of(store::RunDirectory(options.run), config, population, recovered.facts);
}

}  // namespace

int show(const ShowOptions& options) {
    if (options.follow) {
        return follow(options);
    }
    const std::string text = show_text(options);
    fmt::print("{}", options.csv || options.json ? text : painted(text));
    return exit_done;
}

}  // namespace finch::app
