#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace finch::cluster {

/// The node as this process sees it. 0 or empty: unknown, or no limit.
struct Machine {
    std::string cpu;                       ///< "AMD EPYC 9654 96-Core Processor"
    std::string instructions;              ///< the widest vectors: "AVX-512", "AVX2", "SSE"
    std::string bfloat16;                  ///< what multiplies it: "AMX", "AVX512-BF16"
    std::vector<int> cpus = {};            ///< numbers of those that this process may run on
    int cpus_online = 0;                   ///< of the whole node
    std::int64_t memory_bytes = 0;         ///< of the whole node
    std::int64_t memory_limit_bytes = 0;   ///< of this process's control groups, the least
    std::int64_t address_space_bytes = 0;  ///< ulimit -v
    std::int64_t locked_bytes = 0;         ///< ulimit -l
    std::int64_t open_files = 0;           ///< ulimit -n
    int nvidia_devices = 0;                ///< device files /dev/nvidia0 …, whether or not a driver library is there
    bool operator==(const Machine&) const = default;
};
[[nodiscard]] Machine this_machine();

/// Memory of this process now, after free heap memory was given back to the system.
struct HeldMemory {
    std::int64_t resident_bytes = 0;       ///< a page that several processes share counts in parts
    std::int64_t address_space_bytes = 0;  ///< what ulimit -v counts
};
[[nodiscard]] HeldMemory held_memory();

/// Bytes that this process can still take: its share of the node's memory and of its control groups' limit, which the
/// `ranks` on the node divide among them, less a reserve for what is none of theirs (the launcher, the kernel's tables)
/// and for the libraries' own; and what ulimit -v leaves. Never negative.
[[nodiscard]] std::int64_t memory_left(const Machine& machine, const HeldMemory& held, int ranks);

/// The widest vectors that the flags of /proc/cpuinfo name: "AVX-512", "AVX2", "AVX", "SSE"; empty if there are
/// none.
[[nodiscard]] std::string vector_instructions(const std::string& flags);

/// Instructions that multiply bfloat16, by the same flags: "AMX", "AVX512-BF16"; empty if there are none.
[[nodiscard]] std::string bfloat16_instructions(const std::string& flags);

/// The least memory limit of control groups, in bytes; 0 if there is none. `groups`: the text of /proc/self/cgroup
/// (versions 1 and 2); `root`: where they are mounted, /sys/fs/cgroup.
[[nodiscard]] std::int64_t memory_limit_of_groups(const std::string& groups, const std::filesystem::path& root);

/// "0-3,8": CPU numbers, ascending, as taskset and Slurm write them.
[[nodiscard]] std::string cpu_list(const std::vector<int>& cpus);

}  // namespace finch::cluster
