// RAPL against a made folder tree, as Linux has it under /sys/class/powercap.
#include "finch/energy/meter.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

using namespace finch::energy;

namespace {

namespace fs = std::filesystem;

struct Tree {
    finch::testing::TemporaryFolder folder;

    [[nodiscard]] fs::path path() const { return folder.path(); }
    void write(const std::string& file, const std::string& text) const {
        fs::create_directories((path() / file).parent_path());
        std::ofstream(path() / file) << text << "\n";
    }
    void zone(const std::string& name, const std::string& is, const std::string& microjoules,
              const std::string& range = "262143328850") const {
        write(name + "/name", is);
        write(name + "/max_energy_range_uj", range);
        write(name + "/energy_uj", microjoules);
    }
    void count(const std::string& name, const std::string& microjoules) const {
        write(name + "/energy_uj", microjoules);
    }
};

/// Joules between two readings, the second after `change`.
template <class Change>
double joules(const Tree& tree, int ranks, Change change) {
    const Found found = open_rapl(tree.path(), ranks);
    REQUIRE_MESSAGE(found.meter, found.problem);
    const double before = found.meter->read(0).value();
    change();
    return found.meter->read(1).value() - before;
}

}  // namespace

TEST_CASE("joules of one processor, from its microjoules") {
    const Tree tree;
    tree.zone("intel-rapl:0", "package-0", "1000000");

    CHECK(joules(tree, 1, [&] { tree.count("intel-rapl:0", "3500000"); }) == doctest::Approx(2.5));
    CHECK(open_rapl(tree.path(), 1).meter->source() == Source::measured_cpu);
}

TEST_CASE("processors are added; their parts, which are in them, what is around them, and their doubles are not") {
    const Tree tree;
    const std::string names[] = {"intel-rapl:0", "intel-rapl:1",      "intel-rapl:0:0", "intel-rapl:1:0",
                                 "intel-rapl:2", "intel-rapl-mmio:0", "intel-rapl",     "dtpm"};
    const std::string is[] = {"package-0", "package-1", "package-0-part", "dram",
                              "psys",      "package-0", "package-9",      "package-8"};
    for (int i = 0; i < 8; ++i) {
        tree.zone(names[i], is[i], "0");
    }

    const double both = joules(tree, 1, [&] {
        for (const std::string& name : names) {
            tree.count(name, name == "intel-rapl:1" ? "2000000" : "1000000");
        }
    });

    CHECK(both == doctest::Approx(3));
    CHECK(open_rapl(tree.path(), 1).packages == 2);
}

TEST_CASE("each of a node's ranks has the same part") {
    const Tree tree;
    tree.zone("intel-rapl:0", "package-0-die-0", "0");
    tree.zone("intel-rapl:1", "package-0-die-1", "0");

    const double quarter = joules(tree, 4, [&] {
        tree.count("intel-rapl:0", "6000000");
        tree.count("intel-rapl:1", "2000000");
    });

    CHECK(quarter == doctest::Approx(2));
}

TEST_CASE("a counter that has gone round goes on, each in its own range, any number of times") {
    const Tree tree;
    tree.zone("intel-rapl:0", "package-0", "9000000", "10000000");
    tree.zone("intel-rapl:1", "package-1", "5000000", "6000000");
    const Found found = open_rapl(tree.path(), 1);
    REQUIRE(found.meter);
    const double before = found.meter->read(0).value();

    tree.count("intel-rapl:0", "2000000");  // 1 to its end, 2 behind
    CHECK(found.meter->read(1).value() - before == doctest::Approx(3));
    tree.count("intel-rapl:1", "1000000");  // 1 to its end, 1 behind
    CHECK(found.meter->read(2).value() - before == doctest::Approx(5));
    tree.count("intel-rapl:0", "1000000");  // 8 to its end, 1 behind
    CHECK(found.meter->read(3).value() - before == doctest::Approx(14));
}

TEST_CASE("no folder, no processor in it, and what is no number: nothing, and why") {
    const Tree tree;
    const auto problem = [&] {
        const Found found = open_rapl(tree.path(), 1);
        CHECK(!found.meter);
        CHECK(!found.is_closed);
        return found.problem;
    };
    CHECK(open_rapl(tree.path() / "none", 1).problem.find("none") != std::string::npos);
    CHECK(problem().find("no processor has a counter") != std::string::npos);
    tree.zone("intel-rapl:0", "psys", "0");
    CHECK(problem().find("no processor has a counter") != std::string::npos);
    tree.zone("intel-rapl:0", "package-0", "12 apples");
    CHECK(problem().find("\"12 apples\" is no number") != std::string::npos);
    tree.zone("intel-rapl:0", "package-0", "0", "");
    CHECK(problem().find("max_energy_range_uj") != std::string::npos);
}

TEST_CASE("one processor that may not be read, of two, and there is no measurement; one that goes later ends it") {
    const Tree tree;
    tree.zone("intel-rapl:0", "package-0", "0");
    tree.zone("intel-rapl:1", "package-1", "0");
    const Found found = open_rapl(tree.path(), 1);
    REQUIRE(found.meter);
    CHECK(found.meter->read(0));
    fs::remove(tree.path() / "intel-rapl:1/energy_uj");

    CHECK(!found.meter->read(1));
    CHECK(!open_rapl(tree.path(), 1).meter);
}

TEST_CASE("what only root may read is told from what is not there") {
    const Tree tree;
    tree.zone("intel-rapl:0", "package-0", "0");
    fs::permissions(tree.path() / "intel-rapl:0/energy_uj", fs::perms::none);
    fs::permissions(tree.path(), fs::perms::all);
    const bool is_root = ::geteuid() == 0;
    if (is_root) {
        REQUIRE(::seteuid(65534) == 0);  // root reads everything
    }

    const Found found = open_rapl(tree.path(), 1);

    if (is_root) {
        REQUIRE(::seteuid(0) == 0);
    }
    CHECK(!found.meter);
    CHECK(found.is_closed);
    CHECK(found.problem.find("energy_uj: Permission denied") != std::string::npos);
}
