#include "finch/app/opening.hpp"

#include "finch/base/bytes.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <random>

namespace finch::app {
namespace {

std::uint64_t new_run_number() {
    std::random_device entropy;
    return (std::uint64_t{entropy()} << 32) | entropy();
}

/// Refuses to go on with what would not be the same search.
void check_same_search(const config::Config& config, const store::ArchiveFacts& facts,
                       const store::RunDirectory& directory, const std::string& data_fingerprint) {
    const config::Config before = config::parse(facts.config, (directory.archive() / "config").string());
    const std::string changes = config::difference(before.fixed_text(), config.fixed_text());
    const std::string advice =
        "only budget, propagator, exchange, workers, checkpoint and log may change between two starts of a run; go on "
        "with the old values, or begin another run with --run DIR, or set the old one aside with --fresh";
    if (!changes.empty()) {
        throw ConfigError(fmt::format("{}: this run was made with another configuration:\n{}\n{}",
                                      directory.root().string(), changes, advice));
    }
    if (facts.data_fingerprint != data_fingerprint) {
        throw ConfigError(fmt::format("{}: this run was made with other data (checksum {} then, {} now); {}",
                                      directory.root().string(), facts.data_fingerprint, data_fingerprint, advice));
    }
}

void write_config(const store::RunDirectory& directory, const config::Config& config) {
    const std::filesystem::path beside = directory.config().string() + ".new";
    std::ofstream out(beside);
    out << config.text();
    out.close();
    if (!out) {
        throw ConfigError(fmt::format("{}: cannot be written", beside.string()));
    }
    std::filesystem::rename(beside, directory.config());
}

/// The journals of workers that do not exist any more: what they hold is in the archive and its predecessor.
void remove_other_journals(const store::RunDirectory& directory, int workers) {
    std::error_code none;
    for (int worker = workers; std::filesystem::exists(directory.journal(worker), none); ++worker) {
        std::filesystem::remove(directory.journal(worker), none);
    }
}

/// How many individuals each worker has bred in all starts of the run.
std::vector<std::int32_t> bred_by_workers(const search::Population& population) {
    std::vector<std::int32_t> bred;
    for (const auto& [id, individual] : population.individuals()) {
        bred.resize(std::max<std::size_t>(bred.size(), id.worker() + 1));
        ++bred[id.worker()];
    }
    return bred;
}

/// Merges what an earlier start left into `run`.
void resume(OpenedRun& run, store::Recovered recovered, const store::RunDirectory& directory,
            const config::Config& config, const std::string& data_fingerprint) {
    check_same_search(config, recovered.facts, directory, data_fingerprint);
    for (const std::string& problem : recovered.problems) {
        spdlog::warn("{}", problem);
    }
    for (search::Record& record : recovered.records) {
        run.population.merge(std::move(record));
    }
    recovered.records = {};
    recovered.merge_into(run.population);
    const std::string before = recovered.facts.config;
    run.workers_before = recovered.facts.workers;
    run.hours_before = hours_used(recovered.facts);
    run.facts = std::move(recovered.facts);
    ++run.facts.restarts;
    run.greeting =
        fmt::format("resuming {}: {} evaluated, {} unfinished, start number {}", directory.root().string(),
                    run.population.settled(), run.population.size() - run.population.settled(), run.facts.restarts + 1);
    const std::string changed = before == config.text() ? "" : config::difference(before, config.text());
    if (!changed.empty()) {
        run.greeting += "; changed since: " + changed;
    }
}

}  // namespace

double hours_used(const store::ArchiveFacts& facts) {
    std::map<std::uint32_t, double> longest;
    for (const auto& [key, report] : facts.reports) {
        longest[key.first] = std::max(longest[key.first], report.up_seconds);
    }
    double seconds = 0;
    for (const auto& [restart, up] : longest) {
        seconds += up;
    }
    return seconds / 3600;
}

OpenedRun open_run(const store::RunDirectory& directory, const config::Config& config, const RunOptions& options,
                   const cluster::Slurm& slurm, const std::string& data_fingerprint, int workers, int islands) {
    OpenedRun run;
    run.population = search::Population(config.exchange.kind, islands);
    if (options.fresh && slurm.restart_count == 0 && directory.holds_a_run()) {
        if (store::is_locked(directory)) {
            throw ConfigError(directory.root().string() + ": --fresh cannot set aside a run that is in use");
        }
        spdlog::info("--fresh: the earlier run is now {}", directory.move_aside().string());
    }
    directory.create(workers);
    run.lock = std::make_unique<store::RunLock>(directory, slurm.job_id.value_or(""));
    if (auto recovered = store::recover(directory, store::Curves::leave)) {
        resume(run, std::move(*recovered), directory, config, data_fingerprint);
    } else {
        run.facts.run = new_run_number();
        run.greeting = fmt::format("a new run in {}", directory.root().string());
    }
    run.facts.seed = config.seed;
    run.facts.config = config.text();
    run.facts.data_fingerprint = data_fingerprint;
    run.facts.workers = workers;
    run.facts.islands = islands;
    run.facts.state = "running";
    run.facts.budget_evaluations = config.budget.evaluations.value_or(-1);
    run.facts.events.push_back({unix_seconds(), 0, run.facts.restarts == 0 ? "start" : "restart", run.greeting});
    // Synced before anybody breeds: no number of this start can be given out again. Written twice, so that the
    // predecessor holds all of it too: the journals begin anew.
    store::write_archive(directory.archive(), config.space, run.population, run.facts);
    store::write_archive(directory.archive(), config.space, run.population, run.facts);
    for (const auto& [id, individual] : run.population.individuals()) {
        if (!individual.curve.empty()) {
            run.population.forget_curve(id);
        }
    }
    run.bred_before = bred_by_workers(run.population);
    remove_other_journals(directory, workers);
    write_config(directory, config);
    return run;
}

std::string pack_run(const OpenedRun& run) {
    Bytes bytes;
    ByteWriter writer(bytes);
    writer.put(run.facts.run);
    writer.put(run.facts.restarts);
    writer.put(run.workers_before);
    writer.put(run.hours_before);
    writer.put_all(std::span<const std::int32_t>(run.bred_before));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

OpenedRun unpack_run(const std::string& packed, search::ExchangeKind kind, int islands) {
    ByteReader reader(std::as_bytes(std::span(packed)));
    OpenedRun run;
    run.facts.run = reader.get<std::uint64_t>();
    run.facts.restarts = reader.get<std::uint32_t>();
    run.workers_before = reader.get<int>();
    run.hours_before = reader.get<double>();
    run.bred_before = reader.get_all<std::int32_t>();
    run.population = search::Population(kind, islands);
    return run;
}

}  // namespace finch::app
