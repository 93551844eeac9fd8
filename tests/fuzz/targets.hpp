#pragma once

#include "finch/base/bytes.hpp"

#include <functional>
#include <string>
#include <vector>

namespace finch::fuzz {

/// One reader of input from outside: good inputs to begin with, and what reads one. A finch::Error is an answer.
struct Target {
    std::string name;
    std::vector<Bytes> corpus;
    std::function<void(const Bytes&)> read;
    std::function<void(Bytes&)> repair = [](Bytes&) {};  ///< corrects checksums after a mutation
    bool uses_hdf5 = false;                              ///< whose own crashes are counted, not ours
};

/// `folder` is for files that the targets write.
[[nodiscard]] std::vector<Target> targets(const std::string& folder);

}  // namespace finch::fuzz
