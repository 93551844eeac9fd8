// Copies of programs' checkpoints, and the heirs that begin with them.
#include "finch/evaluate/kept_files.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::evaluate;
using finch::testing::contents;
using finch::testing::put_contents;

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t this_run = 7;
constexpr std::int64_t two_parents = 2;

/// Returns an individual that continued after the first rung, epoch 1, where its loss was `loss`.
search::Individual at_rung(std::uint64_t id, double loss) {
    search::Individual one;
    one.id = {id};
    one.island = 0;
    one.epochs = 1;
    one.pruning = search::Pruning{1, loss, {loss}};
    return one;
}

search::Individual heir_of(std::uint64_t parent, std::uint64_t id) {
    search::Individual heir;
    heir.id = {id};
    heir.island = 0;
    heir.inherited_from = {parent};
    heir.inherited_epochs = heir.epochs = 1;
    return heir;
}

struct Kept {
    Kept() {
        directory.create();
        fs::create_directories(checkpoint);
        put_contents(checkpoint / "weights", "of epoch 1");
        REQUIRE_FALSE(curve.add(*read_report_line("finch loss=0.30000000000000004 epoch=1 top5=0.5")));
    }
    /// Keeps the checkpoint of an individual with `loss` at the first rung, and merges the individual.
    void keep(std::uint64_t id, double loss) {
        const search::Individual one = at_rung(id, loss);
        if (is_wanted_at_rung(one, population, two_parents)) {
            of_this_run.keep(one, checkpoint, curve, population, two_parents);
        }
        population.merge(one);
    }
    [[nodiscard]] bool has(std::uint64_t id) const { return of_this_run.has_parent_of(heir_of(id, 9)); }

    testing::TemporaryFolder folder;
    store::RunDirectory directory{folder / "run"};
    RungCheckpoints of_this_run{directory, this_run};
    fs::path checkpoint = folder / "checkpoint";
    ReportedCurve curve;
    search::Population population{search::ExchangeKind::none, 1};
};

}  // namespace

TEST_CASE("an heir gets its own copy of the checkpoint and the epochs of its parent") {
    Kept kept;
    kept.keep(1, 0.5);
    put_contents(kept.checkpoint / "weights", "destroyed");
    const search::Individual heir = heir_of(1, 9);
    const fs::path own = kept.directory.evaluation_file(heir.id, "parent") / "checkpoint/weights";

    ReportedCurve curve;
    kept.of_this_run.begin(heir, curve);

    CHECK(contents(own) == "of epoch 1");
    CHECK(curve.losses() == std::vector{0.30000000000000004});
    CHECK(curve.metrics().front().value == 0.5);
    CHECK(curve.own_epochs() == 0);
    put_contents(own, "changed by the heir");
    ReportedCurve other;
    kept.of_this_run.begin(heir_of(1, 17), other);
    CHECK(contents(kept.directory.evaluation_file({17}, "parent") / "checkpoint/weights") == "of epoch 1");

    fs::remove_all(kept.directory.checkpoint_after_epoch({1}, 1));
    ReportedCurve resumed;
    kept.of_this_run.begin(heir, resumed);
    CHECK(resumed.losses() == curve.losses());
    CHECK(contents(own) == "changed by the heir");
}

TEST_CASE("a copy that is missing, of another run or incomplete has no heir") {
    Kept kept;
    ReportedCurve curve;
    CHECK_FALSE(kept.has(1));
    CHECK_THROWS_WITH_AS(kept.of_this_run.begin(heir_of(1, 9), curve),
                         "the copy of the checkpoint of its parent 0.0.1 after epoch 1 is missing", FileError);
    kept.keep(1, 0.5);
    CHECK(kept.has(1));
    CHECK_FALSE(RungCheckpoints(kept.directory, this_run + 1).has_parent_of(heir_of(1, 9)));

    fs::remove(kept.directory.checkpoint_after_epoch({1}, 1) / "reports");
    CHECK_FALSE(kept.has(1));
    CHECK_THROWS_AS(
        kept.of_this_run.keep(at_rung(2, 0.5), kept.folder / "none", kept.curve, kept.population, two_parents),
        StorageError);
    CHECK_FALSE(fs::exists(kept.directory.checkpoint_after_epoch({2}, 1).string() + ".new"));

    fs::remove(kept.checkpoint / "weights");
    CHECK_THROWS_WITH_AS(
        kept.of_this_run.keep(at_rung(3, 0.5), kept.checkpoint, kept.curve, kept.population, two_parents),
        ("the folder " + kept.checkpoint.string() + " is empty").c_str(), StorageError);
    CHECK_FALSE(kept.has(3));
}

TEST_CASE("an heir gets its parent's checkpoint once more unless it has reported an epoch") {
    Kept kept;
    kept.keep(1, 0.5);
    const search::Individual heir = heir_of(1, 9);
    const fs::path own = kept.directory.evaluation_file(heir.id, "parent") / "checkpoint/weights";
    const auto begin = [&] {
        ReportedCurve curve;
        kept.of_this_run.begin(heir, curve);
        return contents(own);
    };
    CHECK(begin() == "of epoch 1");
    put_contents(own, "changed by the heir");
    CHECK(begin() == "of epoch 1");
    put_contents(own, "changed by the heir");
    put_contents(kept.directory.evaluation_file(heir.id, "reports"), "finch epoch=2 loss=1 seconds=1\n");
    CHECK(begin() == "changed by the heir");
}

TEST_CASE("an heir does not begin anew because its copy cannot be written") {
    Kept kept;
    kept.keep(1, 0.5);
    const fs::path folder = kept.directory.evaluation_file({9}, "parent").parent_path();
    fs::create_directories(folder.parent_path());
    put_contents(folder, "a file");
    ReportedCurve curve;
    CHECK_THROWS_AS(kept.of_this_run.begin(heir_of(1, 9), curve), StorageError);
}

TEST_CASE("a rung keeps the checkpoints of its best trainings, and a start removes the others") {
    Kept kept;
    kept.keep(1, 3);
    kept.keep(2, 2);
    CHECK((kept.has(1) && kept.has(2)));
    kept.keep(3, 1);
    CHECK_FALSE(kept.has(1));
    kept.keep(4, 4);
    CHECK_FALSE(kept.has(4));
    CHECK((kept.has(2) && kept.has(3)));

    const RungCheckpoints& all = kept.of_this_run;
    for (const std::uint64_t id : {4, 5}) {
        all.keep(at_rung(id, 0), kept.checkpoint, kept.curve, search::Population(search::ExchangeKind::none, 1),
                 two_parents);
    }
    fs::create_directories(kept.directory.checkpoint_after_epoch({6}, 1).string() + ".new/checkpoint");
    kept.population.merge(heir_of(4, 20));
    remove_unused_rungs(kept.directory, kept.population, {.parents = two_parents, .rungs = {1, 3}});
    CHECK((kept.has(2) && kept.has(3) && kept.has(4)));
    CHECK_FALSE(kept.has(5));
    CHECK_FALSE(fs::exists(kept.directory.checkpoint_after_epoch({6}, 1).string() + ".new"));
}
