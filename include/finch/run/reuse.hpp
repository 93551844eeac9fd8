#pragma once

#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/search/duplicates.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/run_directory.hpp"

#include <optional>
#include <string>
#include <vector>

namespace finch::run {

/// Results of the runs of `search.reuse`.
struct OtherRuns {
    search::OtherResults results;
    std::vector<store::ReusedRun> runs;  ///< of whose individuals these are
    std::vector<std::string> notes;      ///< for the log: what was found, and what could not be read
};

/// World rank 0 only. Reads the runs of `search.reuse`, the first of them first: of equal genomes its result stays.
/// `fingerprint`: of this run's data or program; nothing: not known, and not compared. Throws ConfigError if one of
/// them is `directory` itself, cannot be read, does not fit (why_unfit()), or has results of which none lies in this
/// space. Of a run that the start of `directory` before this one was given already (`goes_on`: there may be one), this
/// is a note: the results taken over from it are known, and a requeued job must not end for it.
[[nodiscard]] OtherRuns read_other_runs(const config::Config& config, const store::RunDirectory& directory,
                                        bool goes_on, const std::optional<std::string>& fingerprint);

/// Why no result of a run with these `facts` and the configuration `other` is one of this search: another version of
/// Finch (of a command its files count alone, as part of `fingerprint`), other data, of networks another seed, by which
/// the samples that validate are drawn, or another model, training or objective. Nothing if some may be.
[[nodiscard]] std::optional<std::string> why_unfit(const store::ArchiveFacts& facts, const config::Config& other,
                                                   const config::Config& config,
                                                   const std::optional<std::string>& fingerprint);

/// Collective over `leaders`. Gives all what rank 0 has.
void share_results(MPI_Comm leaders, search::OtherResults& results);

/// Adds those that are not there yet; where one is now of those that are.
void add_runs(std::vector<store::ReusedRun>& known, const std::vector<store::ReusedRun>& runs);

}  // namespace finch::run
