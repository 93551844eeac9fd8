#include "finch/run/summary.hpp"

#include "finch/base/log.hpp"
#include "finch/base/replace.hpp"
#include "finch/process/program_file.hpp"
#include "finch/store/model_file.hpp"

#include <cstdlib>
#include <exception>
#include <span>
#include <unistd.h>
#include <utility>

namespace finch::run {

namespace fs = std::filesystem;

namespace {

/// training.epochs of the best individual; nothing without one.
std::optional<std::int64_t> epochs_of(const config::Config& config, const search::Population& population) {
    const search::Individual* const best = population.best();
    return config.trains() && best != nullptr
               ? std::optional(config.recipe(best->genome, best->id.value).training.epochs)
               : std::nullopt;
}

/// Returns how a user in `folder` can type `file`: its name if the shell finds it in `search_path`, else a path.
std::string typed(const fs::path& file, const fs::path& folder, const std::string& search_path) {
    std::error_code none;
    const fs::path found = process::program_file(file.filename().string(), search_path);
    if (!found.empty() && fs::equivalent(found, file, none)) {
        return file.filename().string();
    }
    const fs::path relative = file.lexically_relative(folder);
    return relative.empty() || *relative.begin() == ".." ? file.string() : relative.string();
}

report::Commands commands() {
    std::error_code none;
    const fs::path program = fs::read_symlink("/proc/self/exe", none);
    const char* const search_path = std::getenv("PATH");
    report::Commands found =
        program.empty() ? report::Commands{}
                        : commands_of(program, fs::current_path(none), search_path == nullptr ? "" : search_path);
    found.most_ranks = ::sysconf(_SC_NPROCESSORS_ONLN);
    return found;
}

}  // namespace

report::Commands commands_of(const fs::path& program, const fs::path& folder, const std::string& search_path) {
    std::error_code none;
    const fs::path above = program.parent_path().parent_path();
    report::Commands commands{.finch = typed(program, folder, search_path)};
    for (const auto& [script, needed] :
         {std::pair(program.parent_path() / "finch-report", above / "share/finch/tools/report.py"),
          std::pair(above / "tools/report.py", above / "tools/report.py")}) {
        if (fs::exists(script, none) && fs::exists(needed, none)) {
            commands.report = typed(script, folder, search_path);
            break;
        }
    }
    return commands;
}

std::string summary_of(const store::RunDirectory& directory, const config::Config& config,
                       const search::Population& population, const store::ArchiveFacts& facts) {
    const std::string run = directory.root().string();
    const report::Competition competition{config.exchange.kind, config.costs, config.final_choice, config.measure};
    return report::summary_text({
        .space = config.space,
        .population = population,
        .facts = facts,
        .competition = competition,
        .run = run,
        .commands = commands(),
        .results = config.trains() ? store::read_results(directory.best_model(), facts.run) : NamedArrays(),
        .trains = config.trains(),
        .epochs = epochs_of(config, population),
        .accepts =
            [&](const std::vector<std::string>& settings) {
                try {
                    static_cast<void>(config::parse(config.text(), run, settings));
                    return true;
                } catch (const ConfigError&) {
                    return false;
                }
            },
    });
}

void write_summary(const store::RunDirectory& directory, const config::Config& config,
                   const search::Population& population, const store::ArchiveFacts& facts) {
    try {
        const std::string text = summary_of(directory, config, population, facts);
        replace_file(directory.summary(), {std::as_bytes(std::span(text))}, Predecessor::drop);
    } catch (const std::exception& error) {
        spdlog::warn("{} could not be written: {}", directory.summary().string(), error.what());
    }
}

}  // namespace finch::run
