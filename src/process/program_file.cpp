#include "finch/process/program_file.hpp"

#include <array>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace finch::process {

namespace fs = std::filesystem;

fs::path program_file(const std::string& name, const std::string& search_path, const fs::path& folder) {
    if (name.find('/') != std::string::npos) {
        const fs::path file = folder / name;
        return is_executable(file) ? file : fs::path();
    }
    std::istringstream entries(search_path);
    for (std::string entry; std::getline(entries, entry, ':');) {
        const fs::path file = folder / entry / name;
        if ((!folder.empty() || fs::path(entry).is_absolute()) && is_executable(file)) {
            return file;
        }
    }
    return {};
}

bool is_executable(const fs::path& file) {
    std::error_code none;
    return fs::is_regular_file(file, none) && ::access(file.c_str(), X_OK) == 0;
}

std::string script_line(const fs::path& file) {
    std::array<char, 256> bytes{};  // as many as Linux reads
    std::ifstream input(file, std::ios::binary);
    input.read(bytes.data(), bytes.size());
    const std::string text(bytes.data(), static_cast<std::size_t>(input.gcount()));
    if (!text.starts_with("#!")) {
        return "";
    }
    const std::size_t end = text.find('\n');
    const std::size_t begin = text.find_first_not_of(" \t", 2);
    return begin >= end ? "" : text.substr(begin, end - begin);
}

}  // namespace finch::process
