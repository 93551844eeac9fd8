#pragma once

#include "finch/config/config.hpp"
#include "finch/run/evolve.hpp"

namespace finch::run {

/// Returns `config` with the guesses of `search.first: {run: DIR}`. If the run of `options` is resumed, it keeps the
/// guesses with which it began. Otherwise the guesses are the genes of the best individuals of the run in DIR, as far
/// as the search space has these genes. Adds log lines about these guesses to `notes`. `restarts`: how often the Slurm
/// job was requeued. A requeued job ignores --fresh, because the first start of the job has already applied it. Throws
/// ConfigError if the run in DIR has no usable individual.
[[nodiscard]] config::Config with_first_guesses(config::Config config, const RunOptions& options, long long restarts,
                                                std::vector<std::string>& notes);

}  // namespace finch::run
