#pragma once

#include "finch/report/competition.hpp"
#include "finch/store/resume.hpp"

#include <array>
#include <string>
#include <string_view>

namespace finch::report {

/// What other programs read: spreadsheets; Perfetto and chrome://tracing; networkx and Gephi; Optuna.
enum class Format { csv, trace, graphml, optuna };
constexpr std::array<std::string_view, 4> words_of(Format) {
    return {"csv", "trace", "graphml", "optuna"};
}

/// A run in a format: see csv(), trace(), lineage() and optuna_journal(). `space` is the configuration's, with its
/// conditions; `name` the run's.
[[nodiscard]] std::string exported(Format format, const store::Recovered& recovered, const search::Space& space,
                                   const Competition& competition, const std::string& name);

/// Chrome's trace events (JSON): a process for each worker, a lane for each of its slots, a slice for each evaluation
/// with its genes, and within it one for each epoch where it was trained without a stop in between; slices for waiting
/// in between; starts, and what /events has, beside them. Microseconds since the first start. Of an evaluation that
/// went on after a stop it has what the last start did.
[[nodiscard]] std::string trace(const store::Recovered& recovered, const search::Space& space,
                                const Competition& competition);

/// Who descends from whom, as GraphML: a node for each individual with its genes and result, an edge from each parent,
/// from what it inherited weights from, and from what it is a retry of.
[[nodiscard]] std::string lineage(const store::Recovered& recovered, const search::Space& space,
                                  const Competition& competition);

/// A study of the name `name` for optuna.storages.journal.JournalFileBackend (Optuna 3.1 and later, seen with 5.0): a
/// trial for each individual with its active genes and their distributions, the learning curve by the measure of the
/// value as intermediate values (with one objective), and the rest as user attributes. Pruned ones are PRUNED, those
/// without a loss FAIL, unfinished ones RUNNING.
[[nodiscard]] std::string optuna_journal(const store::Recovered& recovered, const search::Space& space,
                                         const Competition& competition, const std::string& name);

}  // namespace finch::report
