#include "finch/app/verbs.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/report/csv.hpp"
#include "finch/report/json.hpp"
#include "finch/report/status.hpp"
#include "finch/run/commands.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>
#include <variant>

namespace finch::app {
namespace {

std::filesystem::path directory_asked_about(const run::RunOptions& options) {
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
    const std::string extension = options.config.extension().string();
    if (!is_there(options.config) && extension != ".yaml" && extension != ".yml") {
        store::throw_no_run(store::RunDirectory(options.config));
    }
    return run::run_directory_of(config::load(options.config, options.settings), options);
}

ExportFormat parse_format(const ExportOptions& options) {
    if (const auto format = enumerator<ExportFormat>(options.format)) {
        return *format;
    }
    const std::string script = run::commands().exporter;
    if (std::ranges::find(formats_of_script, options.format) == formats_of_script.end()) {
        throw ConfigError(fmt::format("--format: there is no {}; accepted: {}; {} writes {}", options.format,
                                      fmt::join(all_words<ExportFormat>(), ", "), script,
                                      fmt::join(formats_of_script, ", ")));
    }
    const std::string output =
        options.output ? fmt::format(" -o {}", shell_argument(options.output->string())) : std::string();
    throw ConfigError(fmt::format("finch export does not write {0}; use this command: {1} {2} --format {0}{3}",
                                  options.format, script, shell_argument(options.run.string()), output));
}

}  // namespace

int export_run(const ExportOptions& options) {
    const ExportFormat format = parse_format(options);
    const auto [recovered, config, competition] = read_run(options.run);
    const std::string text =
        format == ExportFormat::csv
            ? report::csv(recovered, competition)
            : report::individuals_json(recovered, config.space, competition.measure, options.run.string());
    if (!options.output) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        return exit_done;
    }
    std::ofstream file(*options.output, std::ios::binary);
    if (!(file << text << std::flush)) {
        throw ConfigError(
            fmt::format("--output: {} cannot be written: {}", options.output->string(), std::strerror(errno)));
    }
    return exit_done;
}

int status(const run::RunOptions& options, bool progress) {
    const report::Status now = status_of(directory_asked_about(options));
    fmt::print("{}\n", progress ? report::progress_text(now) : report::status_text(now));
    return report::exit_code(now);
}

int print_run_directory(const run::RunOptions& options) {
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

int print_config() {
    fmt::print("{}", config::reference_text());
    return exit_done;
}

int generate_data(const std::filesystem::path& folder, std::int64_t samples, std::int64_t size, std::uint64_t seed) {
    data::Options options;
    options.kind = data::Kind::generated;
    options.generated_samples = samples;
    options.size = {size};
    data::generate(options, seed, folder.string());
    fmt::print("{} of {}x{} in {}\n", counted(samples, "image"), size, size, folder.string());
    return exit_done;
}

ReadRun read_run(const std::filesystem::path& run) {
    const store::RunDirectory directory(run);
    store::Recovered recovered = store::recover_run(directory);
    recovered.facts.state = report::state_of(directory, recovered.facts.state);
    config::Config config = config::parse(recovered.facts.config, run.string());
    recovered.adopt(config.space);
    report::Competition competition{config.exchange.kind, config.costs, config.final_choice, config.measure};
    return {std::move(recovered), std::move(config), std::move(competition)};
}

report::Status status_of(const std::filesystem::path& run) {
    report::Status status = report::status(store::RunDirectory(run));
    status.measure = config::measure_of(status.config);
    return status;
}

}  // namespace finch::app
