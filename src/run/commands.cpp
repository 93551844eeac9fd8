#include "finch/run/commands.hpp"

#include "finch/base/words.hpp"
#include "finch/process/program_file.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <system_error>
#include <unistd.h>

namespace finch::run {

namespace fs = std::filesystem;

std::string command_path(const fs::path& file, const fs::path& folder, const std::string& search_path) {
    std::error_code none;
    const std::string name = file.filename().string();
    if (fs::equivalent(process::program_file(name, search_path), file, none)) {
        return name;
    }
    const fs::path relative = file.lexically_relative(folder);
    if (relative.empty() || *relative.begin() == "..") {
        return file.string();
    }
    return relative.has_parent_path() ? relative.string() : "./" + name;
}

report::Commands commands_of(const fs::path& file, const fs::path& folder, const std::string& search_path) {
    std::error_code none;
    report::Commands commands;
    const auto name = [&](const fs::path& one) { return shell_argument(command_path(one, folder, search_path)); };
    const auto find = [&](std::string& command, std::initializer_list<fs::path> candidates) {
        const auto* const found =
            std::ranges::find_if(candidates, [&](const fs::path& candidate) { return fs::exists(candidate, none); });
        command = found == candidates.end() ? command : name(*found);
    };
    const fs::path folder_of_programs = file.parent_path();
    const fs::path prefix = folder_of_programs.parent_path();
    find(commands.program, {file});
    find(commands.report, {folder_of_programs / "finch-report", prefix / "tools/report.py"});
    find(commands.exporter, {folder_of_programs / "finch-export", prefix / "tools/export.py"});
    find(commands.job_script, {prefix / "share/finch/jobs/evolve.sbatch", prefix / "jobs/evolve.sbatch"});
    return commands;
}

report::Commands commands() {
    std::error_code none;
    const char* const path = std::getenv("PATH");  // NOLINT: one thread
    report::Commands found =
        commands_of(fs::read_symlink("/proc/self/exe", none), fs::current_path(none), path == nullptr ? "" : path);
    found.is_root = ::geteuid() == 0;
    int has_two_threads = 0;  // a core; Open MPI counts cores
    std::ifstream("/sys/devices/system/cpu/smt/active") >> has_two_threads;
    found.most_ranks = ::sysconf(_SC_NPROCESSORS_ONLN) / (has_two_threads == 1 ? 2 : 1);
    return found;
}

}  // namespace finch::run
