#include "finch/run/commands.hpp"

#include "finch/base/words.hpp"
#include "finch/process/program_file.hpp"

#include <cstdlib>
#include <fstream>
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
    const fs::path prefix = file.parent_path().parent_path();
    if (fs::exists(file, none)) {
        commands.program = name(file);
    }
    for (const fs::path& tool : {file.parent_path() / "finch-report", prefix / "tools/report.py"}) {
        if (fs::exists(tool, none)) {
            commands.report = name(tool);
            break;
        }
    }
    for (const fs::path& script : {prefix / "share/finch/jobs/evolve.sbatch", prefix / "jobs/evolve.sbatch"}) {
        if (fs::exists(script, none)) {
            commands.job_script = name(script);
            break;
        }
    }
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
