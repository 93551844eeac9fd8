#include "finch/run/summary.hpp"

#include "finch/base/log.hpp"
#include "finch/base/replace.hpp"
#include "finch/report/summary.hpp"
#include "finch/run/commands.hpp"
#include "finch/store/model_file.hpp"

#include <exception>
#include <span>

namespace finch::run {

namespace {

/// training.epochs of the best individual; nothing without one.
std::optional<std::int64_t> epochs_of(const config::Config& config, const search::Population& population) {
    const search::Individual* const best = population.best();
    return config.trains() && best != nullptr
               ? std::optional(config.recipe(best->genome, best->id.value).training.epochs)
               : std::nullopt;
}

/// Returns `make` of the summary's input.
std::string from_input(const store::RunDirectory& directory, const config::Config& config,
                       const search::Population& population, const store::ArchiveFacts& facts, TestResults results,
                       std::string (*make)(const report::SummaryInput&)) {
    const std::string run = directory.root().string();
    const report::Competition competition{config.exchange.kind, config.costs, config.final_choice, config.measure};
    return make({
        .space = config.space,
        .population = population,
        .facts = facts,
        .competition = competition,
        .run = run,
        .commands = commands(),
        .results = config.trains() && results == TestResults::read
                       ? store::read_results(directory.best_model(), facts.run)
                       : NamedArrays(),
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

}  // namespace

std::string summary_of(const store::RunDirectory& directory, const config::Config& config,
                       const search::Population& population, const store::ArchiveFacts& facts, TestResults results) {
    return from_input(directory, config, population, facts, results, report::summary_text);
}

std::string statistics_of(const store::RunDirectory& directory, const config::Config& config,
                          const search::Population& population, const store::ArchiveFacts& facts) {
    return from_input(directory, config, population, facts, TestResults::read, report::statistics_json);
}

void write_summary(const store::RunDirectory& directory, const config::Config& config,
                   const search::Population& population, const store::ArchiveFacts& facts, TestResults results) {
    try {
        const std::string text = summary_of(directory, config, population, facts, results);
        // `finch show` prints the summary of the present files, so a crash of the node may bring back an older one
        // here.
        replace_file(directory.summary(), {std::as_bytes(std::span(text))}, {Predecessor::drop, FolderSync::none});
    } catch (const std::exception& error) {
        spdlog::warn("{} could not be written: {}", directory.summary().string(), error.what());
    }
}

}  // namespace finch::run
