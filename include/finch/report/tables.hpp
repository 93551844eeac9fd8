#pragma once

#include "finch/report/competition.hpp"
#include "finch/report/csv.hpp"
#include "finch/report/status.hpp"
#include "finch/search/population.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/resume.hpp"

#include <string>

/// The texts of `finch show`: every function returns whole lines and prints nothing.
namespace finch::report {

/// How many of the best are shown: of all islands together, or of each.
struct Top {
    int count = 3;
    bool of_each_island = false;
};

/// The best individuals: id, loss (under the name `fitness`), accuracy, epochs, generation, seconds of training, energy
/// if that is known of any, genes in words. Under migration, a table for each island: an
/// individual lives on one.
[[nodiscard]] std::string best_table(const search::Space& space, const search::Population& population,
                                     const store::ArchiveFacts& facts, const Top& top, const std::string& fitness);

/// The candidates of a final choice: their loss (under the name `fitness`), mean and standard deviation of their
/// repeats', and who has won, if that is decided. Empty as long as there are no repeats.
[[nodiscard]] std::string final_table(const search::Space& space, const search::Population& population,
                                      const std::optional<search::FinalChoice>& choice, const std::string& fitness);

/// Individuals of all islands that no other dominates in the loss (under the name `fitness`) and all `costs`, by their
/// loss. Empty without costs.
[[nodiscard]] std::string front_table(const search::Space& space, const search::Population& population,
                                      const std::vector<search::Cost>& costs, const std::string& fitness);

/// How many individuals ended how: "10 evaluated, 30 pruned".
[[nodiscard]] std::string outcome_words(const search::Population& population);

/// The trainings of each worker by its journal, `most` lines at most; `now` in Unix seconds.
[[nodiscard]] std::string training_table(const search::Space& space, const search::Population& population, double now,
                                         std::size_t most);

/// Each worker of the last start: where it is, how long it was up, which share of that it trained; the mean last.
[[nodiscard]] std::string worker_table(const store::ArchiveFacts& facts);

/// Job, nodes and log of the last `count` starts, oldest first; empty if nothing is known of them.
[[nodiscard]] std::string start_list(const store::ArchiveFacts& facts, std::size_t count);

/// The last `count` events, oldest first.
[[nodiscard]] std::string event_list(const store::ArchiveFacts& facts, std::size_t count);

/// Results per hour that any worker was up, over all starts; 0 if nothing is known yet.
[[nodiscard]] double evaluations_per_hour(const store::ArchiveFacts& facts);

/// The objectives of a search, with units: "validation error (share of images) and parameters".
[[nodiscard]] std::string objectives_text(const Competition& competition);

/// All of it: the run's name and state, counts, the best by `competition`, the front or the final choice, workers,
/// events, and damaged files.
[[nodiscard]] std::string overview(const store::Recovered& recovered, const std::string& run, const Top& top,
                                   const Competition& competition);

}  // namespace finch::report
