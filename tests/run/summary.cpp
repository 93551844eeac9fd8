// Tests that the summary proposes commands that the user can type.
#include "finch/run/summary.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>

using namespace finch;

namespace {

void make_executable(const std::filesystem::path& file) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "#!/bin/sh\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
}

}  // namespace

TEST_CASE("commands_of: paths in the source tree, relative below the folder of the user") {
    const testing::TemporaryFolder folder;
    make_executable(folder / "build/finch");
    make_executable(folder / "tools/report.py");

    const report::Commands at_root = run::commands_of(folder / "build/finch", folder / "", "/usr/bin");
    const report::Commands elsewhere = run::commands_of(folder / "build/finch", folder / "runs", "/usr/bin");

    CHECK(at_root.finch == "build/finch");
    CHECK(at_root.report == "tools/report.py");
    CHECK(elsewhere.finch == (folder / "build/finch").string());
    CHECK(elsewhere.report == (folder / "tools/report.py").string());
}

TEST_CASE("commands_of: names that the shell finds in an installation; a path if it finds another program") {
    const testing::TemporaryFolder folder;
    make_executable(folder / "bin/finch");
    make_executable(folder / "bin/finch-report");
    make_executable(folder / "share/finch/tools/report.py");
    make_executable(folder / "other/finch");
    const std::string bin = (folder / "bin").string();
    const std::string other = (folder / "other").string();

    const report::Commands found = run::commands_of(folder / "bin/finch", "/", "/usr/bin:" + bin);
    const report::Commands hidden = run::commands_of(folder / "bin/finch", "/", other + ":" + bin);

    CHECK(found.finch == "finch");
    CHECK(found.report == "finch-report");
    CHECK(hidden.finch == (folder / "bin/finch").string().substr(1));  // relative to /
    CHECK(hidden.report == "finch-report");
}
