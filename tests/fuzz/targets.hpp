#pragma once

#include "finch/base/bytes.hpp"

#include <functional>
#include <string>
#include <vector>

namespace finch::fuzz {

/// A reader of external input: a corpus of valid inputs, and a function that reads one input. A finch::Error is a valid
/// result.
struct Target {
    std::string name;
    std::vector<Bytes> corpus;
    std::function<void(const Bytes&)> read;
    std::function<void(Bytes&)> repair = [](Bytes&) {};  ///< corrects checksums after a mutation
    bool uses_hdf5 = false;                              ///< crashes inside libhdf5 are counted, not reported
};

/// Returns all targets. The targets write their files to `folder`.
[[nodiscard]] std::vector<Target> targets(const std::string& folder);

}  // namespace finch::fuzz
