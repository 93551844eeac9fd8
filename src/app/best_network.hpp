#pragma once

#include "finch/store/model_file.hpp"
#include "finch/store/resume.hpp"
#include "finch/store/run_directory.hpp"

namespace finch::app {

/// Reads models/best.h5. Throws ConfigError if the file does not exist, cannot be read, or belongs to another run.
[[nodiscard]] store::ModelFile read_best_network(const store::RunDirectory& directory,
                                                 const store::Recovered& recovered);

}  // namespace finch::app
