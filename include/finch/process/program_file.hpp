#pragma once

#include <filesystem>
#include <string>

namespace finch::process {

/// The file that execvp(3) starts for `name`: `name` itself with a slash in it, else the first executable file of that
/// name in the folders of `search_path`, split at ':'. Relative to `folder`; without it, relative entries of
/// `search_path` are left out. Empty if there is none.
[[nodiscard]] std::filesystem::path program_file(const std::string& name, const std::string& search_path,
                                                 const std::filesystem::path& folder = {});

/// Whether it is a file that this process may execute.
[[nodiscard]] bool is_executable(const std::filesystem::path& file);

/// The first line of a script behind "#!", without blanks at its beginning; empty if `file` is no script. A '\r' at
/// its end, which Linux takes as part of it, stays.
[[nodiscard]] std::string script_line(const std::filesystem::path& file);

}  // namespace finch::process
