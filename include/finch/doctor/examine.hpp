#pragma once

#include "finch/comm/mpi.hpp"

/// `finch doctor`: what Finch finds on this machine, what is wrong with it, and how to mend it.
namespace finch::doctor {

/// Collective over the world. World rank 0 prints; the others tell it what they find. Returns 0 if nothing stops a
/// run, 1 otherwise, the same on every rank.
[[nodiscard]] int examine(const comm::Session& session);

}  // namespace finch::doctor
