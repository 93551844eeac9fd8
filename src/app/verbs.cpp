#include "finch/app/verbs.hpp"

#include "finch/app/read_run.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/links.hpp"
#include "finch/base/words.hpp"
#include "finch/report/export.hpp"
#include "finch/report/status.hpp"
#include "finch/simulate/arguments.hpp"
#include "finch/simulate/tables.hpp"

#include <cstdio>
#include <fstream>
#include <variant>

namespace finch::app {
namespace {

std::filesystem::path directory_asked_about(const RunOptions& options) {
    if (options.run) {
        return *options.run;
    }
    std::error_code none;
    if (std::filesystem::is_directory(options.config, none)) {
        return options.config;
    }
    if (const std::string link = dangling_link(options.config); !link.empty()) {
        throw ConfigError(fmt::format("{}: there is no run here ({})", options.config.string(), link));
    }
    return run_directory_of(config::load(options.config, options.settings), options);
}

constexpr const char* default_durations = "lognormal:60,0.5";

std::vector<double> seconds_recorded_in(const std::string& run) {
    search::Population population(search::ExchangeKind::none, 1);
    read_run(run).recovered.move_into(population);
    return simulate::recorded_seconds(population);
}

/// Throws ConfigError where it cannot be written.
void write_line(std::ofstream& file, const std::filesystem::path& path, const std::string& line) {
    if (!(file << line << std::flush)) {
        throw ConfigError(fmt::format("--csv: {} cannot be written", path.string()));
    }
}

report::Format parse_format(const std::string& text) {
    if (const auto format = enumerator<report::Format>(text)) {
        return *format;
    }
    throw ConfigError(
        fmt::format("--format: there is no {}; accepted: {}", text, fmt::join(all_words<report::Format>(), ", ")));
}

}  // namespace

int export_run(const ExportOptions& options) {
    const report::Format format = parse_format(options.format);
    const auto [recovered, config, competition] = read_run(options.run);
    const std::string text = report::exported(format, recovered, config.space, competition, config.name);
    if (!options.output) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        return exit_done;
    }
    std::ofstream file(*options.output, std::ios::binary);
    if (!(file << text << std::flush)) {
        throw ConfigError(fmt::format("--output: {} cannot be written", options.output->string()));
    }
    return exit_done;
}

int status(const RunOptions& options, bool progress) {
    const report::Status now = status_of(directory_asked_about(options));
    fmt::print("{}\n", progress ? report::progress_text(now) : report::status_text(now));
    return report::exit_code(now);
}

int print_run_directory(const RunOptions& options) {
    fmt::print("{}\n", directory_asked_about(options).string());
    return exit_done;
}

int status_of_several(const std::vector<std::filesystem::path>& runs) {
    std::vector<report::Status> all = report::statuses({runs.begin(), runs.end()});
    for (report::Status& status : all) {
        status.measure = status.problem.empty() ? config::measure_of(status.config) : search::Measure{};
    }
    fmt::print("{}", report::status_table(all, unix_seconds()));
    return report::exit_code(all);
}

int simulate_runs(const SimulateOptions& options) {
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
        fmt::print("{}", simulate::row(config, result));
        std::fflush(stdout);
        if (options.csv) {
            write_line(csv, *options.csv, simulate::csv_row(config, simulation, result));
        }
    }
    fmt::print("{}", results.size() > 1 ? simulate::summary(config, results) : "");
    return exit_done;
}

int print_config() {
    fmt::print("{}", config::reference_text());
    return exit_done;
}

int generate_data(const std::filesystem::path& folder, std::int64_t samples, std::int64_t size, std::uint64_t seed) {
    data::Options options;
    options.kind = data::Kind::generated;
    options.generated_samples = samples;
    options.generated_size = size;
    data::generate(options, seed, folder.string());
    fmt::print("{} of {}x{} in {}\n", counted(samples, "image"), size, size, folder.string());
    return exit_done;
}

}  // namespace finch::app
