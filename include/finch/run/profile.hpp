#pragma once

#include "finch/evaluate/slots.hpp"
#include "finch/run/run.hpp"
#include "finch/train/profile.hpp"

#include <optional>

/// finch train --profile.
namespace finch::run {

/// Nothing if the options ask for none.
[[nodiscard]] std::optional<train::Profile> begin_profile(const RunOptions& options);

/// Leader only, its followers obey: what was measured, into the log and into profile.json.
void tell_profile(const Run& run, evaluate::Slots& slots);

}  // namespace finch::run
