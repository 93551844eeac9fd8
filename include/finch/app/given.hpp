#pragma once

#include "finch/search/propagator.hpp"

#include <memory>
#include <string>
#include <vector>

namespace finch::app {

/// Always gives the one genome that a user named: `genes` are "name=value", one for every gene. Throws ConfigError that
/// names the genes that are missing, unknown or out of bounds.
[[nodiscard]] std::unique_ptr<search::Propagator> make_given(const search::Space& space,
                                                             const std::vector<std::string>& genes);

/// Ends this process at once, without a word to any other: its files are closed, and a peer may be dead.
[[noreturn]] void leave_at_once(int code);

}  // namespace finch::app
