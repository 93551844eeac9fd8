#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace finch::cluster {

/// The node as seen by this process. 0 or empty: unknown, or no limit.
struct Machine {
    std::string cpu;                       ///< "AMD EPYC 9654 96-Core Processor"
    std::string instructions;              ///< widest vector instructions: "AVX-512", "AVX2", "SSE"
    std::string bfloat16;                  ///< instructions that multiply bfloat16: "AMX", "AVX512-BF16"
    std::vector<int> cpus = {};            ///< numbers of the CPUs on which this process may run
    int cpus_online = 0;                   ///< of the whole node
    std::int64_t memory_bytes = 0;         ///< of the whole node
    std::int64_t memory_limit_bytes = 0;   ///< the smallest limit of this process's control groups and of its job
    std::int64_t address_space_bytes = 0;  ///< ulimit -v
    std::int64_t locked_bytes = 0;         ///< ulimit -l
    std::int64_t open_files = 0;           ///< ulimit -n
    int nvidia_devices = 0;                ///< number of device files /dev/nvidia0 …, even without a driver
    bool operator==(const Machine&) const = default;
};
[[nodiscard]] Machine this_machine();

/// The current memory of this process, after its free heap memory was returned to the system.
struct HeldMemory {
    std::int64_t resident_bytes = 0;       ///< a page shared by n processes counts as 1/n
    std::int64_t address_space_bytes = 0;  ///< as counted by ulimit -v
};
[[nodiscard]] HeldMemory held_memory();

/// Returns the number of bytes that this process can still allocate, never negative. This is the minimum of:
/// - (memory of the node or limit of its control groups − reserve for the launcher and the kernel) / `ranks` − resident
///   memory of this process − reserve for libraries
/// - limit of the address space (ulimit -v) − used address space − reserve for libraries
[[nodiscard]] std::int64_t memory_left(const Machine& machine, const HeldMemory& held, int ranks);

/// Returns the widest vector instructions among the flags of /proc/cpuinfo: "AVX-512", "AVX2", "AVX", "SSE"; empty if
/// there are none.
[[nodiscard]] std::string vector_instructions(const std::string& flags);

/// Returns the bfloat16 instructions among the flags of /proc/cpuinfo: "AMX", "AVX512-BF16"; empty if there are none.
[[nodiscard]] std::string bfloat16_instructions(const std::string& flags);

/// Returns the smallest memory limit of the control groups, in bytes; 0 if there is none. `groups`: the text of
/// /proc/self/cgroup (versions 1 and 2). `root`: the mount point of the control groups, /sys/fs/cgroup.
[[nodiscard]] std::int64_t memory_limit_of_groups(const std::string& groups, const std::filesystem::path& root);

/// Returns the smallest quota of CPU time of the control groups, in CPUs; 0 if there is none. See
/// memory_limit_of_groups().
[[nodiscard]] double cpu_quota_of_groups(const std::string& groups, const std::filesystem::path& root);
/// The same for this process.
[[nodiscard]] double cpu_quota();

/// Returns the limit of CPU seconds of a process (ulimit -t); 0 if there is none.
[[nodiscard]] std::int64_t cpu_seconds_limit();

/// Returns the number of files nvidia0, nvidia1 … in `folder`. Numbers may be missing, as in a container.
[[nodiscard]] int nvidia_device_files(const std::filesystem::path& folder = "/dev");

/// Returns ascending CPU numbers in the notation of taskset and Slurm: "0-3,8".
[[nodiscard]] std::string cpu_list(const std::vector<int>& cpus);

}  // namespace finch::cluster
