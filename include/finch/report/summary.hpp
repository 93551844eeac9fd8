#pragma once

#include "finch/base/named_array.hpp"
#include "finch/report/competition.hpp"
#include "finch/search/population.hpp"
#include "finch/store/archive.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// A run in sentences: what was found, how far it can be trusted, and what to do next.
namespace finch::report {

enum class Topic {
    best,
    convergence,
    test,
    equals,
    final_choice,
    front,
    random_search,
    genes,
    bounds,
    curves,
    failures,
    next
};

struct Sentence {
    Topic topic;
    std::string text;
};

/// How a shell in the working directory names Finch's program and tools.
struct Commands {
    std::string program = "finch";
    std::string report = "tools/report.py";
    std::string exporter = "tools/export.py";
    std::string job_script = "jobs/evolve.sbatch";
    bool is_root = false;         ///< mpirun refuses root without --allow-run-as-root
    std::int64_t most_ranks = 0;  ///< more ranks need mpirun's --oversubscribe; 0: unknown
};

/// Everything that the summary of a run is derived from.
struct SummaryInput {
    const search::Space& space;
    const search::Population& population;
    const store::ArchiveFacts& facts;
    const Competition& competition;
    std::string run;  ///< its directory, as commands name it
    Commands commands{};
    NamedArrays results{};                 ///< arrays of models/best.h5 below "test/" and "validation/"
    bool trains = false;                   ///< individuals are networks
    std::optional<std::int64_t> epochs{};  ///< training.epochs; nothing if a gene decides it, or nothing is trained
    /// True if a configuration with these settings, "path=value", is accepted. Decides which commands are proposed.
    std::function<bool(const std::vector<std::string>&)> accepts = [](const auto&) { return true; };
};

/// The sentences, in the order of Topic; several of Topic::next, each a command with its purpose. Derived from the
/// input alone: the same run gives the same sentences at its end, in `finch show` and in a report.
[[nodiscard]] std::vector<Sentence> summary(const SummaryInput& input);

/// The same as indented lines of at most 100 columns below the line "summary"; commands are never wrapped.
[[nodiscard]] std::string summary_text(const SummaryInput& input);

/// The statistics of the summary as a JSON object: `best_interval` and `test_error_interval`, the 95 % intervals of the
/// best loss and of the error on the test set, and `gene_shares`, the share of the variance of the losses' ranks that
/// each gene of the space explains. null: unknown; the share of a gene that does not matter beyond chance is 0.
[[nodiscard]] std::string statistics_json(const SummaryInput& input);

}  // namespace finch::report
