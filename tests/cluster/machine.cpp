#include "finch/cluster/machine.hpp"

#include "finch/cluster/environment.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <limits>
#include <memory>
#include <vector>

using namespace finch;
using namespace finch::cluster;

namespace {

void write(const std::filesystem::path& path, const char* text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("cpu_list: joins consecutive CPU numbers into ranges, as taskset does") {
    CHECK(cpu_list({}) == "");
    CHECK(cpu_list({3}) == "3");
    CHECK(cpu_list({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
}

TEST_CASE("vector_instructions: returns the widest instruction set of the CPU flags, and matches whole words") {
    CHECK(vector_instructions("fpu sse2 avx avx2 avx512f avx512vl") == "AVX-512");
    CHECK(vector_instructions("fpu sse2 avx avx2") == "AVX2");
    CHECK(vector_instructions("fpu sse2 avx") == "AVX");
    CHECK(vector_instructions("fpu sse2 avx512fnot") == "SSE");
    CHECK(vector_instructions("") == "");
}

TEST_CASE("bfloat16_instructions: prefers AMX to AVX512-BF16, and matches whole words") {
    CHECK(bfloat16_instructions("avx512f avx512_bf16 amx_bf16 amx_tile") == "AMX");
    CHECK(bfloat16_instructions("avx512f avx512_bf16") == "AVX512-BF16");
    CHECK(bfloat16_instructions("avx512f amx_tile amx_int8 avx512_bf16s") == "");
}

TEST_CASE("memory_limit_of_groups: returns the smallest limit of the cgroup and its parents; `max` means no limit") {
    const testing::TemporaryFolder folder;
    write(folder.path() / "slurm" / "memory.max", "4000\n");
    write(folder.path() / "slurm" / "job_7" / "memory.max", "max\n");
    write(folder.path() / "slurm" / "job_7" / "step_0" / "memory.max", "5000\n");
    write(folder.path() / "other" / "memory.max", "1\n");

    CHECK(memory_limit_of_groups("0::/slurm/job_7/step_0\n", folder.path()) == 4000);
    CHECK(memory_limit_of_groups("0::/nowhere\n", folder.path()) == 0);
    CHECK(memory_limit_of_groups("", folder.path()) == 0);
}

TEST_CASE("memory_limit_of_groups: in cgroup version 1, a number near 2^63 means no limit") {
    const testing::TemporaryFolder folder;
    write(folder.path() / "memory" / "memory.limit_in_bytes", "9223372036854771712\n");
    write(folder.path() / "memory" / "slurm" / "job_7" / "memory.limit_in_bytes", "6000\n");
    const char* groups = "9:memory:/slurm/job_7\n4:cpu,cpuacct:/other\n";

    CHECK(memory_limit_of_groups(groups, folder.path()) == 6000);
    CHECK(memory_limit_of_groups("9:memory:/\n", folder.path()) == 0);
}

TEST_CASE("cpu_quota_of_groups: returns the smallest quota of the cgroup and its parents, in both versions") {
    const testing::TemporaryFolder folder;
    write(folder.path() / "slurm" / "cpu.max", "250000 100000\n");
    write(folder.path() / "slurm" / "job_7" / "cpu.max", "max 100000\n");
    write(folder.path() / "cpu" / "cpu.cfs_quota_us", "-1\n");
    write(folder.path() / "cpu" / "box" / "cpu.cfs_quota_us", "150000\n");
    write(folder.path() / "cpu" / "box" / "cpu.cfs_period_us", "100000\n");

    CHECK(cpu_quota_of_groups("0::/slurm/job_7\n", folder.path()) == 2.5);
    CHECK(cpu_quota_of_groups("4:cpu,cpuacct:/box\n", folder.path()) == 1.5);
    CHECK(cpu_quota_of_groups("4:cpu,cpuacct:/\n9:memory:/box\n", folder.path()) == 0);
}

TEST_CASE("this_machine: Slurm's variables limit the memory, too") {
    constexpr std::int64_t mebibyte = 1 << 20;
    ::setenv("SLURM_MEM_PER_NODE", "0", 1);
    ::setenv("SLURM_MEM_PER_CPU", "7", 1);
    ::setenv("SLURM_CPUS_ON_NODE", "3", 1);
    CHECK(this_machine().memory_limit_bytes == 21 * mebibyte);
    ::setenv("SLURM_MEM_PER_NODE", "20", 1);
    CHECK(this_machine().memory_limit_bytes == 20 * mebibyte);
    for (const char* name : {"SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE"}) {
        ::unsetenv(name);
    }
}

TEST_CASE("nvidia_device_files: counts the devices of a container, whatever their numbers") {
    const testing::TemporaryFolder folder;
    for (const char* name : {"nvidia2", "nvidia13", "nvidiactl", "nvidia-uvm", "nvidia", "nvidia3x"}) {
        write(folder.path() / name, "");
    }

    CHECK(nvidia_device_files(folder.path()) == 2);
    CHECK(nvidia_device_files(folder.path() / "none") == 0);
}

TEST_CASE("memory_left: a rank's share of the limit minus used memory and a reserve, and at most ulimit -v") {
    constexpr std::int64_t mebibyte = 1 << 20;
    constexpr std::int64_t libraries = 16;  // in MiB
    Machine machine;
    const HeldMemory held{.resident_bytes = 20 * mebibyte, .address_space_bytes = 60 * mebibyte};

    CHECK(memory_left(machine, held, 4) == std::numeric_limits<std::int64_t>::max());
    machine.memory_bytes = 1000 * mebibyte;
    CHECK(memory_left(machine, held, 4) == ((1000 - 50) * mebibyte) / 4 - (20 + libraries) * mebibyte);
    machine.memory_limit_bytes = 400 * mebibyte;
    CHECK(memory_left(machine, held, 4) == ((400 - 20) / 4 - 20 - libraries) * mebibyte);
    machine.address_space_bytes = 100 * mebibyte;
    CHECK(memory_left(machine, held, 4) == (100 - 60 - libraries) * mebibyte);
    machine.memory_limit_bytes = 100 * mebibyte;
    CHECK(memory_left(machine, held, 4) == 0);
}

TEST_CASE("held_memory: increases with memory that is written, and decreases when it is freed") {
    constexpr std::int64_t mebibyte = 1 << 20;
    const HeldMemory before = held_memory();
    auto block = std::make_unique<std::vector<char>>(64 * mebibyte, '1');
    const HeldMemory with = held_memory();
    block.reset();
    const HeldMemory after = held_memory();

    CHECK(with.resident_bytes - before.resident_bytes > 60 * mebibyte);
    CHECK(with.address_space_bytes - before.address_space_bytes > 60 * mebibyte);
    CHECK(with.resident_bytes - after.resident_bytes > 60 * mebibyte);
}

TEST_CASE("this_machine: reports at least usable_cpus(), and the size of the memory") {
    const Machine machine = this_machine();

    CHECK(static_cast<int>(machine.cpus.size()) >= usable_cpus());
    CHECK(machine.cpus_online >= static_cast<int>(machine.cpus.size()));
    CHECK(machine.memory_bytes > std::int64_t{1} << 26);
}
