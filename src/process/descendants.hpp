#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <vector>

namespace finch::process {

constexpr double look_seconds = 0.01;  ///< between two scans of /proc while processes end

/// Return all descendants of a process (parents first) or only its children, as /proc shows them. Processes that are
/// forked or reparented during the scan may be missing, so call the function again.
[[nodiscard]] std::vector<pid_t> descendants(pid_t process);
[[nodiscard]] std::vector<pid_t> children(pid_t process);

/// True if /proc shows that a process has an open descriptor of `file`. `file`: a result of fstat(2).
[[nodiscard]] bool has_open(pid_t process, const struct stat& file);

/// Two implementations of descendants(): `by_lists` reads /proc/*/task/*/children (kernels with CONFIG_PROC_CHILDREN),
/// `by_stat` reads /proc/*/stat.
[[nodiscard]] std::vector<pid_t> descendants_by_lists(pid_t process);
[[nodiscard]] std::vector<pid_t> descendants_by_stat(pid_t process);

}  // namespace finch::process
