#pragma once

#include "finch/app/forecast.hpp"
#include "finch/app/plan.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What finch plan --measure makes of what it measured: pure functions.
namespace finch::app {

/// Seconds by which a job stops before its time limit: --signal of jobs/evolve.sbatch.
inline constexpr double seconds_to_stop = 180;

/// On workers of so many ranks.
struct MeasuredWorkers {
    int ranks = 1;
    int threads = 1;                                       ///< of each rank
    std::vector<std::optional<SampledIndividual>> sample;  ///< nothing: it could not be trained
};

/// Seconds of an individual with some values of a gene, as a configuration says them.
struct MeasuredGene {
    std::string name;
    std::vector<std::pair<std::string, std::optional<double>>> seconds;  ///< nothing: there is no such network
};

struct Measured {
    std::string device;  ///< of rank 0
    bool on_gpus = false;
    double seconds = 0;                    ///< that it took
    double seconds_of_start = 0;           ///< until a search would begin
    std::vector<MeasuredWorkers> workers;  ///< by their ranks; the genomes of all samples are the same, in one order
    int ranks_of_genes = 1;
    search::Genome base;              ///< of the genes
    std::vector<MeasuredGene> genes;  ///< the others as in `base`
};

/// Seconds of an individual: how they are distributed, what more ranks bring, and which gene they depend on.
[[nodiscard]] std::string measured_text(const config::Config& config, const Measured& measured);

/// How long the search takes in each layout of the question's ranks, the one that ends first, and how to submit that.
[[nodiscard]] std::string layouts_text(const config::Config& config, const PlanOptions& options,
                                       const Question& question, const data::Datasets& datasets,
                                       const Measured& measured, std::optional<double> time_limit);

}  // namespace finch::app
