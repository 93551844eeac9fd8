#pragma once

#include "finch/base/epoch.hpp"
#include "finch/search/gene.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace finch::bench {

/// The trainings that a run recorded.
struct Recorded {
    struct Training {
        search::Genome genome;
        std::vector<Epoch> curve;  ///< at least one epoch
        bool is_complete = false;
        std::int64_t parameters = 0;
        double joules = 0;
    };
    search::Space space;
    std::vector<Training> trainings;
    std::size_t epochs = 0;  ///< the largest number of epochs of a training
};

/// Returns all trainings in the run directory `run` that have a learning curve. Throws std::runtime_error if there is
/// no run.
[[nodiscard]] Recorded read_recorded(const std::string& run);

}  // namespace finch::bench
