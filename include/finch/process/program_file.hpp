#pragma once

#include <filesystem>
#include <string>

namespace finch::process {

/// Returns the file that execvp(3) starts for `name`. A `name` with a slash is the file itself, relative to `folder`. A
/// `name` without a slash is the first executable file of that name in the folders of `search_path`, a list with the
/// separator ':'. Relative entries of `search_path` are relative to `folder`; without a `folder` they are skipped.
/// Empty if there is no file.
[[nodiscard]] std::filesystem::path program_file(const std::string& name, const std::string& search_path,
                                                 const std::filesystem::path& folder = {});

/// True if `file` is a regular file that this process may execute.
[[nodiscard]] bool is_executable(const std::filesystem::path& file);

/// Returns the first line of a script behind "#!", without leading blanks; empty if `file` is no script. A '\r' at the
/// end of the line stays, because Linux counts it as part of the line.
[[nodiscard]] std::string script_line(const std::filesystem::path& file);

}  // namespace finch::process
