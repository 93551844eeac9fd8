#include "finch/cluster/machine.hpp"

#include "finch/base/format.hpp"
#include "finch/cluster/environment.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <malloc.h>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace finch::cluster {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

/// Returns the value of the first line "KEY : value" of /proc/cpuinfo.
std::string value_of(const std::string& text, const std::string& key) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(':');
        if (colon != std::string::npos && line.rfind(key, 0) == 0 &&
            line.find_first_not_of(" \t", key.size()) == colon) {
            const std::size_t begin = line.find_first_not_of(' ', colon + 1);
            return begin == std::string::npos ? "" : line.substr(begin);
        }
    }
    return "";
}

/// Returns the soft limit of a resource; 0 if there is none.
template <class Resource>
std::int64_t soft_limit(Resource resource) {
    struct rlimit limit {};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return 0;
    }
    return static_cast<std::int64_t>(limit.rlim_cur);
}

/// Returns the limit in a file of a control group. Returns 0 if the file contains no number ("max"), or a number near
/// 2^63, which means no limit in version 1.
std::int64_t limit_in(const fs::path& file) {
    const std::string text = text_of(file);
    std::int64_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) {
        return 0;
    }
    constexpr std::int64_t none = std::int64_t{1} << 60;
    return value < none ? value : 0;
}

std::int64_t least(std::int64_t a, std::int64_t b) {
    return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

/// Returns the memory of this job on this node, which Slurm may enforce without control groups; 0 if it is not known.
std::int64_t memory_of_job(const Environment& job) {
    const auto number = [&job](const char* name) { return std::int64_t{job.number(name).value_or(0)} << 20; };
    return least(number("SLURM_MEM_PER_NODE"),
                 number("SLURM_MEM_PER_CPU") * job.number("SLURM_CPUS_ON_NODE").value_or(0));
}

/// Returns the number after `key` (for example "Pss:") in kB, converted to bytes; 0 if the kernel does not report it.
std::int64_t kilobytes_of(const std::string& text, const std::string& key) {
    const std::size_t at = text.find(key);
    return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + key.size()) * 1024;
}

/// Returns the folders of the groups in `groups` that have a `controller`, and of all their parents, whose limits
/// apply, too.
std::vector<fs::path> folders_of(const std::string& groups, const fs::path& root, const std::string& controller) {
    std::vector<fs::path> folders;
    std::istringstream lines(groups);
    for (std::string line; std::getline(lines, line);) {
        // "0::/path" in version 2; "9:memory:/path" or "4:cpu,memory:/path" in version 1.
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) {
            continue;
        }
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const bool is_second_version = controllers == ",,";
        if (!is_second_version && controllers.find("," + controller + ",") == std::string::npos) {
            continue;
        }
        folders.push_back(is_second_version ? root : root / controller);
        const fs::path mount = folders.back();
        fs::path inside = fs::path(line.substr(second + 1)).relative_path();
        for (; !inside.empty(); inside = inside.parent_path()) {
            folders.push_back(mount / inside);
        }
    }
    return folders;
}

/// Returns the meaning of the first flag in `known` that `flags` contain; empty if they contain none.
std::string first_flag(const std::string& flags, std::initializer_list<std::pair<const char*, const char*>> known) {
    std::istringstream words(flags);
    const std::set<std::string> given{std::istream_iterator<std::string>(words), {}};
    for (const auto& [flag, meaning] : known) {
        if (given.contains(flag)) {
            return meaning;
        }
    }
    return "";
}

}  // namespace

std::string vector_instructions(const std::string& flags) {
    return first_flag(flags, {{"avx512f", "AVX-512"}, {"avx2", "AVX2"}, {"avx", "AVX"}, {"sse2", "SSE"}});
}

std::string bfloat16_instructions(const std::string& flags) {
    return first_flag(flags, {{"amx_bf16", "AMX"}, {"avx512_bf16", "AVX512-BF16"}});
}

std::int64_t memory_limit_of_groups(const std::string& groups, const fs::path& root) {
    std::int64_t limit = 0;
    for (const fs::path& group : folders_of(groups, root, "memory")) {
        limit = least(limit, least(limit_in(group / "memory.max"), limit_in(group / "memory.limit_in_bytes")));
    }
    return limit;
}

double cpu_quota_of_groups(const std::string& groups, const fs::path& root) {
    double quota = 0;
    for (const fs::path& group : folders_of(groups, root, "cpu")) {
        std::istringstream text(text_of(group / "cpu.max") + text_of(group / "cpu.cfs_quota_us") + " " +
                                text_of(group / "cpu.cfs_period_us"));
        double time = 0;  // in each period; "max" or -1: there is no quota
        double period = 0;
        if (text >> time >> period && time > 0 && (quota == 0 || time / period < quota)) {
            quota = time / period;
        }
    }
    return quota;
}

double cpu_quota() {
    return cpu_quota_of_groups(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
}

std::int64_t cpu_seconds_limit() {
    return soft_limit(RLIMIT_CPU);
}

int nvidia_device_files(const fs::path& folder) {
    int count = 0;
    std::error_code none;
    for (fs::directory_iterator entry(folder, none); entry != fs::directory_iterator(); entry.increment(none)) {
        const std::string name = entry->path().filename().string();
        const bool has_number = name.size() > 6 && name.find_first_not_of("0123456789", 6) == std::string::npos;
        count += name.starts_with("nvidia") && has_number ? 1 : 0;
    }
    return count;
}

HeldMemory held_memory() {
#if defined(__GLIBC__)
    ::malloc_trim(0);
#endif
    const std::string status = text_of("/proc/self/status");
    const std::int64_t shared_in_parts = kilobytes_of(text_of("/proc/self/smaps_rollup"), "\nPss:");
    return {.resident_bytes = shared_in_parts > 0 ? shared_in_parts : kilobytes_of(status, "\nVmRSS:"),
            .address_space_bytes = kilobytes_of(status, "\nVmSize:")};
}

std::int64_t memory_left(const Machine& machine, const HeldMemory& held, int ranks) {
    constexpr std::int64_t libraries = std::int64_t{16} << 20;  // code and scratch memory of planned operations
    std::int64_t left = std::numeric_limits<std::int64_t>::max();
    if (const std::int64_t shared = least(machine.memory_bytes, machine.memory_limit_bytes); shared > 0) {
        const std::int64_t reserve = shared / 20;
        left = (shared - reserve) / std::max(1, ranks) - held.resident_bytes - libraries;
    }
    if (machine.address_space_bytes > 0) {
        left = std::min(left, machine.address_space_bytes - held.address_space_bytes - libraries);
    }
    return std::max<std::int64_t>(0, left);
}

std::string cpu_list(const std::vector<int>& cpus) {
    std::string text;
    for (std::size_t i = 0; i < cpus.size();) {
        std::size_t last = i;
        while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) {
            ++last;
        }
        text += text.empty() ? "" : ",";
        text += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
        i = last + 1;
    }
    return text;
}

Machine this_machine() {
    const std::string about = text_of("/proc/cpuinfo");
    Machine machine;
    machine.cpu = value_of(about, "model name");
    machine.instructions = vector_instructions(value_of(about, "flags"));
    machine.bfloat16 = bfloat16_instructions(value_of(about, "flags"));
    machine.cpus = own_cpus();
    machine.cpus_online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
    machine.memory_bytes = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
    machine.memory_limit_bytes = least(memory_limit_of_groups(text_of("/proc/self/cgroup"), "/sys/fs/cgroup"),
                                       memory_of_job(Environment::of_this_process()));
    machine.address_space_bytes = soft_limit(RLIMIT_AS);
    machine.locked_bytes = soft_limit(RLIMIT_MEMLOCK);
    machine.open_files = soft_limit(RLIMIT_NOFILE);
    machine.nvidia_devices = nvidia_device_files();
    return machine;
}

}  // namespace finch::cluster
