// NVML through a library that the tests build (fake_nvml.cpp).
#include "finch/energy/ledger.hpp"
#include "finch/energy/meter.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <doctest/doctest.h>

using namespace finch::energy;

namespace {

constexpr const char* library = FINCH_FAKE_NVML;

/// A variable of the library, of which all who open it have the same.
template <class T>
T& variable(const char* name) {
    static void* const handle = ::dlopen(library, RTLD_NOW);
    REQUIRE(handle != nullptr);
    return *static_cast<T*>(::dlsym(handle, name));
}
unsigned long long& millijoules() {
    return variable<unsigned long long>("fake_nvml_millijoules");
}

}  // namespace

TEST_CASE("a GPU that counts is measured in joules, from its millijoules") {
    millijoules() = 5'000'000;
    const Found found = open_nvml(library, "GPU-counting", 1);
    REQUIRE(found.meter);

    const double before = found.meter->read(0).value();
    millijoules() += 1500;

    CHECK(found.problem.empty());
    CHECK(found.meter->source() == Source::measured_gpu);
    CHECK(found.meter->read(1).value() - before == doctest::Approx(1.5));
}

TEST_CASE("of a GPU that four ranks share each has a quarter") {
    millijoules() = 0;
    const Found found = open_nvml(library, "GPU-counting", 4);
    REQUIRE(found.meter);
    millijoules() = 10'000;

    CHECK(found.meter->read(1).value() == doctest::Approx(2.5));
}

TEST_CASE("NVML is left as often as it was entered") {
    const int before = variable<int>("fake_nvml_users");
    {
        const Found counting = open_nvml(library, "GPU-counting", 1);
        const Found silent = open_nvml(library, "GPU-silent", 1);
        CHECK(variable<int>("fake_nvml_users") == before + 1);
    }
    CHECK(variable<int>("fake_nvml_users") == before);
}

TEST_CASE("a GPU without a counter, one that NVML does not know, and no library at all: nothing, and why") {
    const Found silent = open_nvml(library, "GPU-silent", 1);
    const Found foreign = open_nvml(library, "GPU-foreign", 1);
    const Found none = open_nvml("libthere-is-no-such.so.1", "GPU-counting", 1);
    const Found other = open_nvml("libc.so.6", "GPU-counting", 1);

    CHECK((!silent.meter && !foreign.meter && !none.meter && !other.meter));
    CHECK(silent.problem == "the GPU GPU-silent does not count its energy: Not Supported");
    CHECK(foreign.problem == "NVML does not know the GPU GPU-foreign: Not Found");
    CHECK(none.problem.find("libthere-is-no-such.so.1") != std::string::npos);
    CHECK(other.problem.find("libc.so.6 is no NVML") != std::string::npos);
}

TEST_CASE("a reading that fails leaves the joules of those who worked unknown, and of nobody after it") {
    millijoules() = 0;
    const Found found = open_nvml(library, "GPU-counting", 1);
    double now = 0;
    Ledger ledger(found.meter.get(), 1, [&] { return now; });
    ledger.begin(0);
    now = 2;
    millijoules() = 3000;
    variable<int>("fake_nvml_failure") = 999;
    ledger.set_worked(0, 2);
    CHECK(!ledger.taken(0).is_known());
    variable<int>("fake_nvml_failure") = 0;
    ledger.begin(0);
    now = 4;
    millijoules() = 7000;
    ledger.set_worked(0, 2);

    CHECK(ledger.taken(0) == Energy{4, Source::measured_gpu});
}

TEST_CASE("a rank with a GPU has the GPU's counter, else the estimate; never that of the CPUs") {
    const Places places{"/there/is/no/such/folder", library};
    const auto source = [&](const Wishes& wishes) {
        const Found found = open_meter(wishes, places);
        return found.meter ? found.meter->source() : Source::unknown;
    };

    CHECK(source({.gpu = "GPU-counting", .watts = 25}) == Source::measured_gpu);
    CHECK(source({.gpu = "GPU-silent", .watts = 25}) == Source::estimated);
    CHECK(source({.gpu = "GPU-silent"}) == Source::unknown);
    CHECK(source({.watts = 25}) == Source::estimated);
    CHECK(source({}) == Source::unknown);
}

TEST_CASE("what a machine can measure, by the places that FINCH_TEST_NVML and FINCH_TEST_RAPL name") {
    ::setenv("FINCH_TEST_NVML", library, 1);
    ::setenv("FINCH_TEST_RAPL", "/there/is/no/such/folder", 1);

    const Available found = find_available({"GPU-counting", "GPU-silent"}, Places::of_this_process());

    ::unsetenv("FINCH_TEST_NVML");
    ::unsetenv("FINCH_TEST_RAPL");
    CHECK(found.packages == 0);
    CHECK(found.rapl_problem.find("/there/is/no/such/folder") != std::string::npos);
    CHECK(!found.rapl_is_closed);
    REQUIRE(found.nvml_problems.size() == 2);
    CHECK(found.nvml_problems[0].empty());
    CHECK(found.nvml_problems[1].find("Not Supported") != std::string::npos);
    CHECK(Places::of_this_process().nvml == "libnvidia-ml.so.1");
}
