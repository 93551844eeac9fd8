#pragma once

#include "finch/report/summary.hpp"

#include <filesystem>
#include <string>

/// How messages and summaries name the running program and its tools, so that a shell in the working directory finds
/// them.
namespace finch::run {

/// Returns the shortest name of `file` for a shell in `folder`: its plain name if `search_path` leads to it, a relative
/// path if it is below `folder`, otherwise `file`, an absolute path.
[[nodiscard]] std::string command_path(const std::filesystem::path& file, const std::filesystem::path& folder,
                                       const std::string& search_path);

/// Returns the path of finch-export, which belongs to the program file `program`.
[[nodiscard]] std::filesystem::path exporter_of(const std::filesystem::path& program);

/// Returns the commands of the program `file` (absolute), installed in PREFIX/bin or built below the sources.
[[nodiscard]] report::Commands commands_of(const std::filesystem::path& file, const std::filesystem::path& folder,
                                           const std::string& search_path);
/// The same for the running program, its working directory and PATH.
[[nodiscard]] report::Commands commands();

}  // namespace finch::run
