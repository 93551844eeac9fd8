#pragma once

#include "finch/base/error.hpp"
#include "finch/data/dataset.hpp"

#include "support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace finch::test {

using testing::TemporaryFolder;

inline void write_bytes(const std::filesystem::path& path, const std::vector<std::uint8_t>& bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// Returns the message of the ConfigError that load() throws, or an empty string if load() throws none.
inline std::string problem_of(data::Kind kind, const std::filesystem::path& path) {
    try {
        (void)data::load({.kind = kind, .path = path.string()}, 1);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace finch::test
