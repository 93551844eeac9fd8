#pragma once

#include <string>

namespace finch::hdf5 {

/// Why an id could not be closed since this was last asked: the first reason; empty if all could. What a data set's
/// closing could not write to its file is lost.
[[nodiscard]] std::string take_reason_of_failed_close();

}  // namespace finch::hdf5
