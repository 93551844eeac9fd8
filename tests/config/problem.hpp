#pragma once

#include "finch/base/error.hpp"
#include "finch/config/config.hpp"

#include <string>
#include <vector>

namespace finch::test {

/// Returns the message of the ConfigError that parse() throws. Returns an empty text if it throws none.
inline std::string problem_of(const std::string& yaml, const std::vector<std::string>& settings = {}) {
    try {
        (void)config::parse(yaml, "file.yaml", settings);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}
inline bool begins(const std::string& text, const std::string& part) {
    return text.rfind(part, 0) == 0;
}

}  // namespace finch::test
