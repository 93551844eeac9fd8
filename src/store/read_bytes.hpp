#pragma once

#include "finch/base/bytes.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace finch::store {

/// What a file holds; where it cannot be read, nothing, and a line in `problems`.
inline Bytes read_bytes(const std::filesystem::path& path, std::vector<std::string>& problems) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in) {
        problems.push_back(path.string() + ": cannot be read");
    }
    const auto raw = std::as_bytes(std::span(text));
    return {raw.begin(), raw.end()};
}

}  // namespace finch::store
