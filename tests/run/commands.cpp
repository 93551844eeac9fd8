#include "finch/run/commands.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fstream>

namespace fs = std::filesystem;
using namespace finch;

namespace {

/// Writes an executable file and returns its path.
fs::path make_program(const fs::path& file) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "#!/bin/sh\n";
    fs::permissions(file, fs::perms::owner_all);
    return file;
}

}  // namespace

TEST_CASE("command_path: the name if PATH leads to the same file, a path below the folder, or the absolute path") {
    const testing::TemporaryFolder folder;
    const fs::path built = make_program(folder / "build/finch");
    const fs::path installed = make_program(folder / "opt/bin/finch");
    const std::string path = "/nowhere:" + installed.parent_path().string();

    CHECK(run::command_path(installed, "/", path) == "finch");
    CHECK(run::command_path(built, built.parent_path().parent_path(), path) == "build/finch");
    CHECK(run::command_path(built, built.parent_path(), "") == "./finch");
    CHECK(run::command_path(built, installed.parent_path(), path) == built.string());
}

TEST_CASE("commands_of: the report and the job script are those of the installation or of the sources") {
    const testing::TemporaryFolder folder;
    const fs::path built = make_program(folder / "source/build/finch");
    make_program(folder / "source/tools/report.py");
    const fs::path installed = make_program(folder / "opt/bin/finch");
    make_program(folder / "opt/bin/finch-report");
    make_program(folder / "opt/bin/finch-export");
    const fs::path script = make_program(folder / "opt/share/finch/jobs/evolve.sbatch");

    const report::Commands of_sources = run::commands_of(built, folder / "source", "");
    CHECK(of_sources.program == "build/finch");
    CHECK(of_sources.report == "tools/report.py");
    CHECK(of_sources.job_script == "jobs/evolve.sbatch");
    const fs::path source_script = make_program(folder / "source/jobs/evolve.sbatch");
    CHECK(run::commands_of(built, folder / "source", "").job_script == "jobs/evolve.sbatch");
    CHECK(run::commands_of(built, "/usr", "").job_script == source_script.string());

    const report::Commands with_path = run::commands_of(installed, "/usr", installed.parent_path().string());
    CHECK(with_path.program == "finch");
    CHECK(with_path.report == "finch-report");
    CHECK(with_path.exporter == "finch-export");
    CHECK(with_path.job_script == script.string());

    const report::Commands without_path = run::commands_of(installed, "/usr", "");
    CHECK(without_path.report == (folder / "opt/bin/finch-report").string());

    const report::Commands of_nothing = run::commands_of("", "/", "");
    CHECK(of_nothing.program == "finch");
    CHECK(of_nothing.report == "tools/report.py");
}
