#include "finch/app/verbs.hpp"

#include "finch/app/progress.hpp"
#include "finch/base/format.hpp"
#include "finch/report/csv.hpp"
#include "finch/report/status.hpp"
#include "finch/report/tables.hpp"
#include "finch/store/resume.hpp"

namespace finch::app {
namespace {

std::filesystem::path directory_asked_about(const RunOptions& options) {
    if (options.run) {
        return *options.run;
    }
    if (std::filesystem::is_directory(options.config)) {
        return options.config;
    }
    return run_directory_of(config::load(options.config, options.settings), options);
}

}  // namespace

int show(const ShowOptions& options) {
    const auto recovered = store::recover(store::RunDirectory(options.run), OnDamage::leave);
    if (!recovered) {
        throw ConfigError(fmt::format("{}: there is no run here (no population.h5)", options.run.string()));
    }
    const config::Config config = config::parse(recovered->facts.config, options.run.string());
    const search::ExchangeKind exchange = config.exchange.kind;
    fmt::print("{}", options.csv ? report::csv(*recovered, exchange)
                                 : report::overview(*recovered, options.run.string(), options.top, exchange,
                                                    fitness_name(config.objective)));
    return exit_done;
}

int status(const RunOptions& options, bool progress) {
    const store::RunDirectory directory(directory_asked_about(options));
    const report::Status now = report::status(directory);
    fmt::print("{}\n", progress ? report::progress_text(now) : report::status_text(now));
    return exit_code(now.state);
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
    fmt::print("{} images of {}x{} in {}\n", samples, size, size, folder.string());
    return exit_done;
}

}  // namespace finch::app
