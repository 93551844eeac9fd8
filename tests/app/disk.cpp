// Compares the bounds of disk_use() with files that Finch writes. tests/end_to_end/plan.py does so for a whole run.
#include "finch/app/plan_disk.hpp"
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

TEST_CASE("disk_use: bounds the size of an archive, and is at most twice as much") {
    const testing::TemporaryFolder folder;
    const config::Config config = config_of("{evaluations: 1000}");
    store::ArchiveFacts facts;
    facts.config = config.text();
    store::write_archive(folder / "population.h5", config.space, full_population(1000), facts);
    const auto size = static_cast<double>(std::filesystem::file_size(folder / "population.h5"));

    const DiskUse use = disk_use(config, layout, networks, nullptr);

    CHECK(use.individuals == 1004);
    CHECK(use.archive > 3 * size);
    CHECK(use.archive < 6 * size);
    CHECK(use.journals > size);
}

TEST_CASE("disk_use: takes the smallest limit of the budget; hours are no limit") {
    const auto individuals = [](const std::string& budget) {
        return disk_use(config_of(budget, "workers: {slots: 3}"), layout, networks, nullptr).individuals;
    };
    const double in_training = 4 * 3;

    CHECK(individuals("{evaluations: 50}") == 50 + in_training);
    CHECK(individuals("{evaluations: 50, generations: 5}") == 4 * 5 + in_training);
    CHECK(individuals("{epochs: 30, hours: 1}") == 30 + in_training);
    CHECK_FALSE(individuals("{evaluations: null, hours: 1}"));
}

TEST_CASE("disk_use: heirs need the snapshots of `parents` trainings for each rung and island") {
    data::Datasets datasets;
    const auto snapshots = [&](const std::string& inherit) {
        const config::Config config =
            config::parse("search: {pruning: halving, inherit: " + inherit + ", budget: {evaluations: 50}}", "test");
        return disk_use(config, layout, networks, &datasets).snapshots;
    };
    const double slots_alone = snapshots("none");
    const double one = slots_alone / (4 * 3);  // 4 workers with 2 snapshots and the next one

    // Rungs at epochs 1, 3 and 9 of 12, on two islands; and one that each worker writes.
    CHECK(snapshots("{parents: 5}") - slots_alone == doctest::Approx((2 * 3 * 5 + 4) * one));
}

TEST_CASE("disk_text: counts the checkpoints of programs that Finch keeps for heirs") {
    const config::Config config = config::parse(
        "search: {objective: {command: 'true', epochs: 12}, pruning: halving, space: {lr: {real: [0, 1]}},\n"
        "  inherit: {parents: 5, move: [lr]}, budget: {evaluations: 50}}\nworkers: {slots: 2}",
        "test");

    const DiskUse use = disk_use(config, layout, {}, nullptr);

    // Rungs at epochs 1, 3 and 9, on two islands; a copy of each heir, and one that each worker writes.
    CHECK(use.checkpoints == 2 * 3 * 5 + 4 * (2 + 1));
    CHECK(disk_text(config, use, ".").find("; add the folders that programs keep (keep: failed) and 42 checkpoints") !=
          std::string::npos);
}

TEST_CASE("disk_text: warns if the file system has less free space, also for a directory that does not exist yet") {
    const testing::TemporaryFolder folder;
    const config::Config config = config_of("{evaluations: 100}");
    const auto text = [&](double models) {
        return disk_text(config, {.individuals = 100, .models = models}, folder / "not" / "yet");
    };

    CHECK(text(1 << 20) == "disk: at most 1 MiB in the run directory: archive 0, journals 0, snapshots 0, models 1\n");
    CHECK(text(1e18).find("\nwarning: the run directory may need ") != std::string::npos);
    CHECK(text(1e18).find(folder.path().string() + " has only ") != std::string::npos);
}

TEST_CASE("disk_text: names the folders of programs, and the growth without a limit of evaluations") {
    const config::Config config = config::parse(
        "search: {objective: {command: 'true', keep: all}, budget: {evaluations: null, hours: 1}}", "test");

    const std::string text = disk_text(config, {.archive = 3 << 20, .journals = 1 << 20}, ".");

    CHECK(text ==
          "disk: archive and journals of 1000 evaluations take at most 4 MiB; add the folders that programs keep "
          "(keep: all) and learning curves\n");
}
