// Compares disk_bytes() with files that Finch writes. tests/end_to_end/plan.py does so for a whole run.
#include "finch/app/plan_disk.hpp"
#include "finch/base/format.hpp"
#include "finch/store/archive.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::app;

namespace {

constexpr std::int64_t epochs_each = 12;
constexpr std::int64_t norms_each = 6;
const cluster::Layout layout = cluster::make_layout({"a", "a", "b", "b"}, {1, 2, {}});
const Networks networks{.most_epochs = epochs_each, .most_norms = norms_each};

config::Config config_of(const std::string& budget, const std::string& more = "") {
    return config::parse(
        "training: {learning_rate: $lr}\nsearch: {space: {lr: {real: [0.1, 1]}}, budget: " + budget + "}\n" + more,
        "test");
}

/// Returns individuals that use every table of the archive.
search::Population full_population(std::uint32_t count) {
    search::Population all(search::ExchangeKind::pollination, 2);
    for (std::uint32_t number = 1; number <= count; ++number) {
        search::Individual one;
        one.id = search::Id::make(0, number % 4, number);
        one.genome = {0.5};
        one.outcome = search::Outcome::evaluated;
        one.epochs = static_cast<std::int32_t>(epochs_each);
        one.node = "a-node-with-a-long-name-of-40-characters";
        one.device = "NVIDIA H100 80GB HBM3";
        one.problem = std::string(200, 'x');
        for (std::int32_t epoch = 1; epoch <= epochs_each; ++epoch) {
            one.curve.push_back({.epoch = epoch});
            for (std::int64_t norm = 0; norm < norms_each; ++norm) {
                one.metrics.push_back({epoch, "weight_norm.3.body." + std::to_string(norm), 1});
            }
        }
        all.merge_membership(one.id, 0);
        all.merge_membership(one.id, 1);
        all.merge(std::move(one));
    }
    return all;
}

}  // namespace

TEST_CASE("disk_bytes: bounds the archive, its copies and the journals, and is at most twice as much") {
    const testing::TemporaryFolder folder;
    const config::Config config = config_of("{evaluations: 1000}");
    store::ArchiveFacts facts;
    facts.config = config.text();
    store::write_archive(folder / "population.h5", config.space, full_population(1000), facts);
    const auto size = static_cast<double>(std::filesystem::file_size(folder / "population.h5"));

    const double bytes = disk_bytes(config, layout, networks, nullptr);

    CHECK(bytes > 4 * size);
    CHECK(bytes < 8 * size);
}

TEST_CASE("disk_bytes: takes the smallest limit of the budget; hours are no limit") {
    const auto bytes = [](const std::string& budget) {
        return disk_bytes(config_of(budget, "workers: {slots: 3}"), layout, networks, nullptr);
    };

    CHECK(bytes("{evaluations: 50, generations: 5}") == bytes("{evaluations: 20}"));  // on four workers
    CHECK(bytes("{epochs: 30, hours: 1}") < bytes("{evaluations: 30}"));
    CHECK(bytes("{evaluations: null, hours: 1}") == bytes("{evaluations: 1000}"));
}

TEST_CASE("disk_bytes: heirs need the snapshots of `parents` trainings for each rung and island") {
    data::Datasets datasets;
    const auto bytes = [&](const std::string& inherit, int slots) {
        const config::Config config = config::parse(
            fmt::format(
                "search: {{pruning: halving, inherit: {}, budget: {{evaluations: 50}}}}\nworkers: {{slots: {}}}",
                inherit, slots),
            "test");
        return disk_bytes(config, layout, {.snapshot_bytes = 1 << 30}, &datasets);
    };

    // No rung in no epoch, but each of the four workers writes one; two slots more are two snapshots more.
    const double a_slot = bytes("none", 2) - bytes("none", 1);
    CHECK(bytes("{parents: 5}", 1) - bytes("none", 1) == doctest::Approx(a_slot / 2).epsilon(0.01));
}

TEST_CASE("disk_text: the bound, the folders of programs, and a warning if the file system has less free space") {
    const testing::TemporaryFolder folder;
    const config::Config networks_only = config_of("{evaluations: 100}");
    const config::Config programs = config::parse(
        "search: {objective: {command: 'true', keep: all}, budget: {evaluations: null, hours: 1}}", "test");
    const auto text = [&](double bytes) { return disk_text(networks_only, bytes, folder / "not" / "yet"); };

    CHECK(text(1 << 20) == "disk: at most 1 MiB in the run directory\n");
    CHECK(text(1e18).find("\nwarning: the run directory may need ") != std::string::npos);
    CHECK(text(1e18).find(folder.path().string() + " has only ") != std::string::npos);
    CHECK(disk_text(programs, 1 << 22, ".") ==
          "disk: at most 4 MiB in the run directory for 1000 evaluations; add the folders that programs keep (keep: "
          "all)\n");
}
