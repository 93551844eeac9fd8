#pragma once

#include <string>

namespace finch::hdf5 {

/// Returns the first reason why an HDF5 id could not be closed since the last call; empty if there was no failure. If
/// the close of a dataset cannot write elements to the file, these elements are lost.
[[nodiscard]] std::string take_reason_of_failed_close();

}  // namespace finch::hdf5
