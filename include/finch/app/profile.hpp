#pragma once

#include "finch/app/run_context.hpp"
#include "finch/evaluate/slots.hpp"
#include "finch/train/profile.hpp"

#include <optional>

/// finch train --profile.
namespace finch::app {

/// Nothing where the options ask for none.
[[nodiscard]] std::optional<train::Profile> begin_profile(const RunOptions& options);

/// Leader only, its followers obey: what was measured, into the log and into profile.json.
void tell_profile(const RunContext& context, evaluate::Slots& slots);

}  // namespace finch::app
