// Simulates the search of a function objective in virtual time, with any number of workers: docs/simulate.md.
#include "finch/app/verbs.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "simulate/arguments.hpp"
#include "simulate/tables.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <variant>

using namespace finch;

namespace {

struct Arguments {
    std::filesystem::path config;
    std::vector<std::string> settings;  ///< --set
    int workers = 0;
    std::string durations;  ///< empty: the durations of the configuration, else lognormal:60,0.5
    std::string seeds;      ///< empty: the seed of the configuration
    double message_seconds = simulate::measured_message_seconds;
    std::optional<std::filesystem::path> csv;
};

constexpr const char* default_durations = "lognormal:60,0.5";

std::vector<double> seconds_recorded_in(const std::string& run) {
    search::Population population(search::ExchangeKind::none, 1);
    app::read_run(run).recovered.move_into(population);
    return simulate::recorded_seconds(population);
}

/// Throws ConfigError if the line cannot be written.
void write_line(std::ofstream& file, const std::filesystem::path& path, const std::string& line) {
    if (!(file << line << std::flush)) {
        throw ConfigError(fmt::format("--csv: {} cannot be written", path.string()));
    }
}

/// Simulates a run for each seed. Prints the result of each run, and a summary of all runs.
void simulate_runs(const Arguments& options) {
    const config::Config config = config::load(options.config, options.settings);
    simulate::Options simulation{options.workers, {}, options.message_seconds};
    const auto* const function = std::get_if<config::FunctionObjective>(&config.objective);
    const bool configured = function != nullptr && function->seconds > 0 && options.durations.empty();
    simulation.duration =
        configured ? function->duration()
                   : simulate::parse_durations(options.durations.empty() ? default_durations : options.durations,
                                               seconds_recorded_in);
    const std::vector<std::uint64_t> seeds =
        options.seeds.empty() ? std::vector{config.seed} : simulate::parse_seeds(options.seeds);
    simulate::check(config, simulation);
    std::ofstream csv;
    if (options.csv) {
        csv.open(*options.csv);
        write_line(csv, *options.csv, simulate::csv_heading());
    }
    fmt::print("{}", simulate::heading(config, simulation));
    std::vector<simulate::Result> results;
    for (const std::uint64_t seed : seeds) {
        const simulate::Result& result = results.emplace_back(simulate::run(config, simulation, seed));
        fmt::print("{}", simulate::row(result));
        std::fflush(stdout);
        if (options.csv) {
            write_line(csv, *options.csv, simulate::csv_row(config, simulation, result));
        }
    }
    fmt::print("{}", results.size() > 1 ? simulate::summary(results) : "");
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("runs the search of a function objective in virtual time, with any number of workers");
    Arguments options;
    app.add_option("config", options.config, "the configuration (YAML)")->required()->type_name("CONFIG");
    app.add_option("--set", options.settings, "key=value of the configuration, any number of them");
    app.add_option("--workers", options.workers, "simulated, in place of ranks")
        ->required()
        ->check(CLI::Range(1, 1 << 20));
    app.add_option(
        "--durations", options.durations,
        "of evaluations: lognormal:MEDIAN,SPREAD, constant:SECONDS or recorded:RUN (default: the objective's "
        "seconds and spread, or lognormal:60,0.5)");
    app.add_option("--seeds", options.seeds, "1..10, 3 or 1,5,9 (default: the configuration's)");
    app.add_option("--message-seconds", options.message_seconds, "that a message between two leaders takes")
        ->check(CLI::Range(0.0, 3600.0));
    app.add_option("--csv", options.csv, "a file for a row per seed")->type_name("FILE");
    try {
        app.parse(argc, argv);
        simulate_runs(options);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    } catch (const ConfigError& error) {
        fmt::print(stderr, "bench_simulate: {}\n", error.what());
        return 2;
    }
}
