#pragma once

#include "finch/app/plan.hpp"
#include "finch/run/estimate.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Pure functions that convert the measurements of finch plan --measure to text.
namespace finch::app {

/// The time between the stop of a job and its time limit, in seconds. Equal to --signal in jobs/evolve.sbatch.
inline constexpr double seconds_to_stop = 180;

/// Measurements on workers of `ranks` ranks.
struct MeasuredWorkers {
    int ranks = 1;
    int threads = 1;                                            ///< per rank
    std::vector<std::optional<run::MeanEvaluation>> sample;  ///< nothing: the genome could not be trained
};

/// Training times of an individual for several values of one gene. The values are written as in a configuration.
struct MeasuredGene {
    std::string name;
    std::vector<std::pair<std::string, std::optional<double>>> seconds;  ///< nothing: no network has this value
};

struct Measured {
    std::string device;  ///< the device of rank 0
    bool on_gpus = false;
    double seconds = 0;                    ///< duration of the measurement
    double seconds_of_start = 0;           ///< from the job start to the start of a search
    std::vector<MeasuredWorkers> workers;  ///< ordered by ranks; every sample has the same genomes in the same order
    int ranks_of_genes = 1;
    search::Genome base;              ///< the genome that `genes` varies
    std::vector<MeasuredGene> genes;  ///< each gene varied alone, from `base`
};

/// Returns a text about the training times: their distribution, the efficiency of more ranks per worker, and the
/// influence of each gene.
[[nodiscard]] std::string measured_text(const config::Config& config, const Measured& measured);

/// Returns the predicted duration of the search for each measured layout of the ranks in `question`, as text. The text
/// ends with the fastest layout and the sbatch command for it.
[[nodiscard]] std::string layouts_text(const config::Config& config, const PlanOptions& options,
                                       const Question& question, const data::Datasets& datasets,
                                       const Measured& measured, std::optional<double> time_limit);

}  // namespace finch::app
