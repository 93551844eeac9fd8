#include "finch/run/reuse.hpp"

#include "finch/base/bytes.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/version.hpp"
#include "finch/base/words.hpp"
#include "finch/run/share_run.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace finch::run {
namespace {

namespace fs = std::filesystem;

store::Recovered recover_other(const std::string& run) {
    auto recovered = [&run] {
        try {
            return store::recover(store::RunDirectory(run), OnDamage::leave, store::Curves::leave);
        } catch (const FileError& error) {
            throw ConfigError(fmt::format("its archive cannot be read: {}", error.what()));
        }
    }();
    if (!recovered) {
        throw ConfigError(store::no_run_text(store::RunDirectory(run)));
    }
    return std::move(*recovered);
}

/// True if `one` was trained with the batch size that this run would use. With batch_size_per_rank this size depends on
/// the number of ranks.
bool has_same_batch(const search::Individual& one, const config::Config& config, const search::Genome& genome) {
    return !config.trains() || one.ranks == config.workers.ranks ||
           !config.recipe(genome, one.id.value).training.batch_size_per_rank;
}

/// Converts `genome` from the space `other` to `space`: the same active genes with the same values. Returns nothing if
/// `space` does not contain the genome.
std::optional<search::Genome> genome_in(const search::Space& space, const search::Space& other,
                                        const search::Genome& genome) {
    const std::vector<bool> active_there = search::active_genes(other, genome);
    const auto place_there = [&](const search::Gene& gene) {
        const int index = other.index_of(gene.name);
        return index >= 0 && active_there[static_cast<std::size_t>(index)] ? index : -1;
    };
    search::Genome found;
    for (const search::Gene& gene : space.genes) {
        const auto there = static_cast<std::size_t>(place_there(gene));
        const auto value = place_there(gene) < 0
                               ? std::optional(search::first_value(gene))
                               : search::value_in(gene, search::value_text(other.genes[there], genome[there]));
        if (!value) {
            return std::nullopt;
        }
        found.push_back(*value);
    }
    const std::vector<bool> active = search::active_genes(space, found);
    for (std::size_t i = 0; i < space.size(); ++i) {
        if (active[i] != (place_there(space.genes[i]) >= 0)) {
            return std::nullopt;
        }
    }
    const bool lacks_none =
        std::count(active.begin(), active.end(), true) == std::count(active_there.begin(), active_there.end(), true);
    return lacks_none ? std::optional(search::canonical(space, std::move(found))) : std::nullopt;
}

/// Adds the results of `run` to `found`.
void add_results(const std::string& run, const config::Config& config, const std::optional<std::string>& fingerprint,
                 OtherRuns& found) {
    store::Recovered recovered = recover_other(run);
    const config::Config other = config::parse(recovered.facts.config, run);
    if (const auto problem = why_unfit(recovered.facts, other, config, fingerprint)) {
        throw ConfigError(*problem);
    }
    recovered.adopt(other.space);
    search::Population population(search::ExchangeKind::none, 1);
    recovered.move_into(population);
    std::vector<const search::Individual*> finished;
    for (const auto& [id, one] : population.individuals()) {
        if (search::is_reusable(one)) {
            finished.push_back(&one);
        }
    }
    // Sorts the results that the run trained before the results that the run had reused from other individuals.
    std::stable_partition(finished.begin(), finished.end(), [](const auto* one) { return !one->is_reused(); });
    std::size_t fitting = 0;
    for (const search::Individual* one : finished) {
        auto genome = genome_in(config.space, other.space, one->genome);
        if (genome && has_same_batch(*one, config, *genome)) {
            search::Individual judged = *one;  // by this run's limits
            static_cast<void>(search::judge({}, config.limits, judged));
            found.results.add(std::move(*genome), std::move(judged), recovered.facts.run);
            ++fitting;
        }
    }
    if (fitting == 0 && !finished.empty()) {
        const search::Individual& one = *finished.front();
        throw ConfigError(fmt::format("none of its results ({} in all) has genes of this space{}; {} has {}",
                                      finished.size(),
                                      config.trains() ? ", and with batch_size_per_rank the same number of ranks" : "",
                                      to_text(one.id), search::genome_text(other.space, one.genome)));
    }
    for (const std::string& problem : recovered.problems) {
        found.notes.push_back(problem);
    }
    found.notes.push_back(
        fmt::format("search.reuse: {} of {} of {} fit", fitting, counted(std::ssize(finished), "result"), run));
    add_runs(found.runs, recovered.facts.reused_runs);
    add_runs(found.runs, {{recovered.facts.run, fs::absolute(run).lexically_normal().string()}});
}

/// Returns the value of search.reuse in the last start in `directory`.
std::vector<std::string> given_before(const store::RunDirectory& directory) {
    if (!directory.holds_a_run() || !fs::is_regular_file(directory.config())) {
        return {};
    }
    return config::load(directory.config()).reuse;
}

}  // namespace

std::optional<std::string> why_unfit(const store::ArchiveFacts& facts, const config::Config& other,
                                     const config::Config& config, const std::optional<std::string>& fingerprint) {
    const bool is_command = std::holds_alternative<config::CommandObjective>(config.objective);
    if (facts.program_version != program_version() && !is_command) {
        return fmt::format("its results are of Finch {}, and this is Finch {}; accepted: runs of the same version",
                           facts.program_version, program_version());
    }
    if (fingerprint && other.objective.index() == config.objective.index() && facts.data_fingerprint != *fingerprint) {
        return fmt::format("its results are of {} (checksum {} there, {} here); accepted: runs of the same",
                           is_command ? "other files of the program" : "other data", facts.data_fingerprint,
                           *fingerprint);
    }
    if (config.trains() && other.trains() && other.seed != config.seed) {
        return fmt::format(
            "its seed is {}, here it is {}, so that other samples validate; accepted: runs of the same "
            "seed",
            other.seed, config.seed);
    }
    std::string difference = config::difference(other.evaluation_text(), config.evaluation_text());
    std::replace(difference.begin(), difference.end(), '\n', ';');
    return difference.empty() ? std::nullopt : std::optional("it evaluates otherwise: " + difference);
}

void add_runs(std::vector<store::ReusedRun>& known, const std::vector<store::ReusedRun>& runs) {
    for (const store::ReusedRun& run : runs) {
        const auto same = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.run == run.run; });
        if (same != known.end()) {
            *same = run;
        } else {
            known.push_back(run);
        }
    }
}

OtherRuns read_other_runs(const config::Config& config, const store::RunDirectory& directory, bool goes_on,
                          const std::optional<std::string>& fingerprint) {
    OtherRuns found;
    const std::vector<std::string> before =
        goes_on && !config.reuse.empty() ? given_before(directory) : std::vector<std::string>();
    for (const std::string& run : config.reuse) {
        try {
            std::error_code none;
            if (fs::equivalent(run, directory.root(), none)) {
                throw ConfigError("this is the run itself, which knows its results; accepted: other runs");
            }
            add_results(run, config, fingerprint, found);
        } catch (const ConfigError& error) {
            const std::string problem = fmt::format("search.reuse: {}: {}", run, error.what());
            if (std::find(before.begin(), before.end(), run) == before.end()) {
                throw ConfigError(problem);
            }
            found.notes.push_back(problem + "; what was taken over from it stays, nothing more is");
        }
    }
    return found;
}

void share_results(MPI_Comm leaders, search::OtherResults& results) {
    if (comm::rank_of(leaders) != 0) {
        Bytes chunk;
        for (comm::broadcast(leaders, chunk); !chunk.empty(); comm::broadcast(leaders, chunk)) {
            ByteReader reader(chunk);
            while (reader.left() > 0) {
                results.add(search::read_individual(reader));
            }
            chunk.clear();
        }
        return;
    }
    Bytes chunk;
    for (const search::Individual& one : results.all()) {
        search::write_individual(one, false, chunk);
        if (chunk.size() >= chunk_bytes) {
            comm::broadcast(leaders, chunk);
            chunk.clear();
        }
    }
    if (!chunk.empty()) {
        comm::broadcast(leaders, chunk);
    }
    Bytes end;
    comm::broadcast(leaders, end);
}

}  // namespace finch::run
