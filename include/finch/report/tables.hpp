#pragma once

#include "finch/report/competition.hpp"
#include "finch/report/csv.hpp"
#include "finch/report/status.hpp"
#include "finch/search/population.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/resume.hpp"

#include <string>

/// The texts of `finch show`. Every function returns whole lines and prints nothing.
namespace finch::report {

/// The number of best individuals to show: of the whole run, or of each island.
struct Top {
    int count = 3;
    bool of_each_island = false;
};

/// Returns a table of the best individuals. Columns: id, loss (named `fitness`), accuracy, epochs, generation, training
/// seconds, energy if it is known for any individual, genes. With migration an individual belongs to one island only,
/// so the result has a table for each island.
[[nodiscard]] std::string best_table(const search::Space& space, const search::Population& population,
                                     const store::ArchiveFacts& facts, const Top& top, const std::string& fitness);

/// Returns a table of the candidates of a final choice: the loss (column `fitness`), and the mean and standard
/// deviation of the repeats. The heading names the winner, if there is one. Returns an empty text if no candidate was
/// repeated.
[[nodiscard]] std::string final_table(const search::Space& space, const search::Population& population,
                                      const std::optional<search::FinalChoice>& choice, const std::string& fitness);

/// Returns a table of the Pareto front over all islands, with respect to the loss (in a column named `fitness`) and all
/// `costs`, sorted by loss. Empty if `costs` is empty.
[[nodiscard]] std::string front_table(const search::Space& space, const search::Population& population,
                                      const std::vector<search::Cost>& costs, const std::string& fitness);

/// Returns the number of individuals per outcome: "10 evaluated, 30 pruned".
[[nodiscard]] std::string outcome_words(const search::Population& population);

/// Returns the current trainings of each worker, as recorded in its journal, in at most `most` lines. `now`: Unix
/// seconds.
[[nodiscard]] std::string training_table(const search::Space& space, const search::Population& population, double now,
                                         std::size_t most);

/// Returns a table of the workers of the last start: node, device, uptime, and the share of the uptime in which the
/// worker was busy. The heading contains the mean busy share of all workers.
[[nodiscard]] std::string worker_table(const store::ArchiveFacts& facts);

/// Returns job, nodes and log file of the last `count` starts, oldest first; an empty text if all of them are unknown.
[[nodiscard]] std::string start_list(const store::ArchiveFacts& facts, std::size_t count);

/// Returns the last `count` events, oldest first.
[[nodiscard]] std::string event_list(const store::ArchiveFacts& facts, std::size_t count);

/// Returns the number of evaluations per hour of run time, over all starts; 0 if unknown.
[[nodiscard]] double evaluations_per_hour(const store::ArchiveFacts& facts);

/// Returns the objectives of a search with units: "validation error (share of images) and parameters".
[[nodiscard]] std::string objectives_text(const Competition& competition);

/// Returns the whole text of `finch show`: name and state of the run, counts, the best individuals by `competition`,
/// the Pareto front or the final choice, workers, events, and damaged files.
[[nodiscard]] std::string overview(const store::Recovered& recovered, const std::string& run, const Top& top,
                                   const Competition& competition);

}  // namespace finch::report
