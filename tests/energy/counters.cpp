// Tests of RAPL with a directory tree like /sys/class/powercap, and of NVML with a library that these tests build.
#include "finch/energy/meter.hpp"

#include "support/temporary_folder.hpp"

#include <array>
#include <cmath>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fstream>
#include <unistd.h>

using namespace finch::energy;

namespace {

namespace fs = std::filesystem;

struct Tree {
    finch::testing::TemporaryFolder folder;

    void count(const std::string& zone, const std::string& microjoules) const {
        std::ofstream(folder / zone / "energy_uj") << microjoules << "\n";
    }
    void zone(const std::string& zone, const std::string& name, const std::string& microjoules,
              const std::string& range = "262143328850") const {
        fs::create_directories(folder / zone);
        std::ofstream(folder / zone / "name") << name << "\n";
        std::ofstream(folder / zone / "max_energy_range_uj") << range << "\n";
        count(zone, microjoules);
    }
    [[nodiscard]] Found open(int ranks = 1) const { return open_rapl(folder.path(), ranks); }
};

/// Returns a variable of the fake library. All users of the library in this process share the variable.
template <class T>
T& variable(const char* name) {
    static void* const handle = ::dlopen(FINCH_FAKE_NVML, RTLD_NOW);
    REQUIRE(handle != nullptr);
    return *static_cast<T*>(::dlsym(handle, name));
}

bool contains(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("RAPL: sums the packages and divides by the ranks; zones inside or above packages are not counted") {
    const Tree tree;
    const std::array<const char*, 7> zones{
        "intel-rapl:0",      "intel-rapl:1", "intel-rapl:0:0", "intel-rapl:1:0", "intel-rapl:2",
        "intel-rapl-mmio:0", "dtpm"};
    const std::array<const char*, 7> names{"package-0", "package-1-die-1", "core", "dram", "psys", "package-0", "x"};
    for (std::size_t i = 0; i < zones.size(); ++i) {
        tree.zone(zones.at(i), names.at(i), "0");
    }
    const Found found = tree.open(4);
    REQUIRE(found.meter);
    CHECK(found.meter->read(0) == 0);
    for (const char* zone : zones) {
        tree.count(zone, "2000000");
    }
    CHECK(found.meter->read(0) == doctest::Approx(1));
}

TEST_CASE("RAPL: counters wrap around at their own ranges, repeatedly") {
    const Tree tree;
    tree.zone("intel-rapl:0", "package-0", "9000000", "10000000");
    tree.zone("intel-rapl:1", "package-1", "5000000", "6000000");
    const Found found = tree.open();
    REQUIRE(found.meter);
    tree.count("intel-rapl:0", "2000000");  // 1 J up to the range, then 2 J
    CHECK(found.meter->read(0) == doctest::Approx(3));
    tree.count("intel-rapl:1", "1000000");  // 1 J up to the range, then 1 J
    CHECK(found.meter->read(0) == doctest::Approx(5));
    tree.count("intel-rapl:0", "1000000");  // 8 J up to the range, then 1 J
    CHECK(found.meter->read(0) == doctest::Approx(14));
    fs::remove(tree.folder / "intel-rapl:1/energy_uj");
    CHECK(std::isnan(found.meter->read(0)));
}

TEST_CASE("RAPL: without a folder, a package, a number or read permission there is no meter, but a reason") {
    const Tree tree;
    CHECK(contains(open_rapl(tree.folder / "none", 1).problem, "none"));
    tree.zone("intel-rapl:0", "psys", "0");
    CHECK(contains(tree.open().problem, "no processor has a counter"));
    tree.zone("intel-rapl:0", "package-0", "apples");
    CHECK(contains(tree.open().problem, "energy_uj: is no number"));
    tree.zone("intel-rapl:0", "package-0", "0");
    tree.zone("intel-rapl:1", "package-1", "0");
    fs::permissions(tree.folder / "intel-rapl:1/energy_uj", fs::perms::none);
    fs::permissions(tree.folder.path(), fs::perms::all);
    const bool is_root = ::geteuid() == 0;
    REQUIRE((!is_root || ::seteuid(65534) == 0));  // root can read any file
    const Found closed = tree.open();
    REQUIRE((!is_root || ::seteuid(0) == 0));
    CHECK((!closed.meter && closed.is_closed));
    CHECK(contains(closed.problem, "energy_uj: Permission denied"));
}

TEST_CASE("NVML: returns joules, divided by the ranks; every nvmlInit has its nvmlShutdown") {
    const int users = variable<int>("fake_nvml_users");
    {
        const Found found = open_nvml(FINCH_FAKE_NVML, "GPU-counting", 4);
        REQUIRE(found.meter);
        CHECK(variable<int>("fake_nvml_users") == users + 1);
        variable<unsigned long long>("fake_nvml_millijoules") = 10'000;
        CHECK(found.meter->read(0) == doctest::Approx(2.5));
        variable<int>("fake_nvml_failure") = 999;
        CHECK(std::isnan(found.meter->read(0)));
        variable<int>("fake_nvml_failure") = 0;
    }
    CHECK(variable<int>("fake_nvml_users") == users);
}

TEST_CASE("NVML: a GPU without a counter, an unknown GPU and a missing or wrong library give no meter, but a reason") {
    const auto problem = [](const char* library, const char* gpu) {
        const Found found = open_nvml(library, gpu, 1);
        CHECK(!found.meter);
        return found.problem;
    };
    CHECK(problem(FINCH_FAKE_NVML, "GPU-silent") == "the GPU GPU-silent does not count its energy: Not Supported");
    CHECK(problem(FINCH_FAKE_NVML, "GPU-other") == "NVML does not know the GPU GPU-other: Not Found");
    CHECK(contains(problem("libthere-is-no-such.so.1", "GPU-counting"), "libthere-is-no-such.so.1"));
    CHECK(contains(problem("libc.so.6", "GPU-counting"), "libc.so.6 is no NVML"));
}

TEST_CASE("open_meter: the counter of the rank's device, else the estimate; never the CPU's counter for a GPU") {
    ::setenv("FINCH_TEST_NVML", FINCH_FAKE_NVML, 1);
    ::setenv("FINCH_TEST_RAPL", "/there/is/no/such/folder", 1);
    CHECK(contains(open_meter({.gpu = "GPU-counting", .watts = 25}).name, "NVML"));
    CHECK(contains(open_meter({.gpu = "GPU-silent", .watts = 25}).name, "25 W"));
    CHECK(contains(open_meter({.gpu = "GPU-silent", .watts = 25}).problem, "Not Supported"));
    CHECK(!open_meter({.gpu = "GPU-silent"}).meter);
    CHECK(contains(open_meter({.watts = 25}).name, "25 W"));
    CHECK(!open_meter({}).meter);
    ::unsetenv("FINCH_TEST_NVML");
    ::unsetenv("FINCH_TEST_RAPL");
}
