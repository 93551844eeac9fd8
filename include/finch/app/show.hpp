#pragma once

#include "finch/report/tables.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace finch::app {

/// `finch show`. At most one of csv, json and follow.
struct ShowOptions {
    std::filesystem::path run;
    std::string id;       ///< of the one individual to show; empty: the run
    report::Top top;      ///< individuals that it lists
    bool csv = false;     ///< every individual as comma-separated values instead
    bool json = false;    ///< one JSON object instead
    bool follow = false;  ///< again and again, until the run has ended
};
[[nodiscard]] int show(const ShowOptions& options);

}  // namespace finch::app
