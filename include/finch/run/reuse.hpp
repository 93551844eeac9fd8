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

/// The results of the runs in `search.reuse`.
struct OtherRuns {
    search::OtherResults results;
    std::vector<store::ReusedRun> runs;  ///< the runs that own the results
    std::vector<std::string> notes;      ///< for the log: number of results, and runs that could not be read
};

/// World rank 0 only. Reads the runs in `search.reuse` in order. If several runs have a result for a genome, the result
/// of the first run counts. `fingerprint`: identifies the data or program of this run; nothing: unknown, so not
/// compared.
///
/// Throws ConfigError if one of the runs is `directory` itself, cannot be read, does not fit (why_unfit()), or has
/// results but none in this search space. `goes_on`: true if `directory` may contain an earlier start. A problem with a
/// run that the earlier start already used is only a note, so that a requeued job does not fail. The results of that
/// run were copied at the earlier start.
[[nodiscard]] OtherRuns read_other_runs(const config::Config& config, const store::RunDirectory& directory,
                                        bool goes_on, const std::optional<std::string>& fingerprint);

/// Returns the reason why no result of a run with these `facts` and the configuration `other` is valid in this search;
/// nothing if results may be valid. Possible reasons:
/// - another version of Finch (ignored for a command: `fingerprint` covers the files of its program)
/// - other data
/// - for networks another seed, because the seed selects the validation samples
/// - another model, training or objective
[[nodiscard]] std::optional<std::string> why_unfit(const store::ArchiveFacts& facts, const config::Config& other,
                                                   const config::Config& config,
                                                   const std::optional<std::string>& fingerprint);

/// Collective over `leaders`. Sends the results of rank 0 to all leaders.
void share_results(MPI_Comm leaders, search::OtherResults& results);

/// Adds new runs to `known`, and updates the directory of runs that `known` already contains.
void add_runs(std::vector<store::ReusedRun>& known, const std::vector<store::ReusedRun>& runs);

}  // namespace finch::run
