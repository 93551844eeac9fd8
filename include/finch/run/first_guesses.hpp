#pragma once

#include "finch/config/config.hpp"
#include "finch/run/evolve.hpp"

namespace finch::run {

/// `config` with the guesses that `search.first: {run: DIR}` means: those that the run of `options` began with, where
/// it goes on; else the genes of the best individuals of the run in DIR, as far as the space has them, which is told in
/// the log. `restarts`: of the Slurm job, where --fresh has been obeyed already. Throws ConfigError if DIR has none.
[[nodiscard]] config::Config with_first_guesses(config::Config config, const RunOptions& options, long long restarts,
                                                std::vector<std::string>& notes);

}  // namespace finch::run
