#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <vector>

namespace finch::process {

constexpr double look_seconds = 0.01;  ///< between two walks while processes end

/// The children of a process and all that descends from them, parents first, as far as /proc shows it: what is forked
/// or reparented meanwhile may be missing, so ask again.
[[nodiscard]] std::vector<pid_t> descendants(pid_t process);
[[nodiscard]] std::vector<pid_t> children(pid_t process);

/// Whether a process has a descriptor of `file`, as fstat(2) describes it, as far as /proc shows it.
[[nodiscard]] bool has_open(pid_t process, const struct stat& file);

/// The same by /proc/*/task/*/children alone (kernels with CONFIG_PROC_CHILDREN), and by /proc/*/stat alone.
[[nodiscard]] std::vector<pid_t> descendants_by_lists(pid_t process);
[[nodiscard]] std::vector<pid_t> descendants_by_stat(pid_t process);

}  // namespace finch::process
