// Heirs of a worker that trains networks: their parents' snapshots, and what a resume needs of them.
#include "finch/evaluate/kept_files.hpp"

#include "run/world.hpp"

#include <doctest/doctest.h>
#include <filesystem>

using namespace finch;
using namespace finch::run;
using namespace finch::run::small;

namespace {

namespace fs = std::filesystem;

const search::InheritOptions options{.population = 1, .parents = 2, .rungs = {1, 2}};

struct InheritingWorld : World {
    InheritingWorld() {
        config.pruning = search::HalvingOptions{1, 2};
        config.inherit = options;
    }
    [[nodiscard]] bool keeps(std::uint64_t id) const { return fs::exists(directory.after_epoch({id}, 1)); }
};

search::Individual heir_of(const search::Individual& parent, std::uint64_t id) {
    search::Individual heir = individual(id);
    heir.genome = parent.genome;
    heir.inherited_from = heir.parents[0] = parent.id;
    heir.inherited_epochs = heir.epochs = 1;
    heir.pruning.edit().rung = 1;
    return heir;
}

/// Returns an individual that continued after the first rung, where its loss was `loss`.
search::Individual at_rung(std::uint64_t id, double loss) {
    search::Individual one = evaluated(id, loss);
    one.pruning = search::Pruning{1, loss, {loss}};
    return one;
}

bool equal_losses(const search::Individual& a, const search::Individual& b) {
    return a.loss == b.loss && a.curve.back().validation_loss == b.curve.back().validation_loss &&
           a.curve.back().training_loss == b.curve.back().training_loss;
}

}  // namespace

TEST_CASE("an heir continues its parent after the rung, and resumes without the snapshot of its parent") {
    InheritingWorld world;
    CnnEvaluator evaluator = world.evaluator(0, this_run);
    const search::Individual parent = world.train(evaluator, 1);
    REQUIRE(world.keeps(1));
    world.known.merge(parent);

    const search::Individual heir = heir_of(parent, 9);
    CHECK(evaluator.can_continue(heir, world.known));
    search::Individual wider = heir;
    wider.genome = {3};
    CHECK_FALSE(evaluator.can_continue(wider, world.known));
    CHECK_FALSE(evaluator.can_continue(heir_of(individual(17), 9), world.known));
    const search::Individual done = world.train(evaluator, heir);
    CHECK(done.inherited_from == parent.id);
    CHECK(done.epochs == 2);
    CHECK(done.own_epochs() == 1);
    REQUIRE(done.curve.size() == 2);
    CHECK(done.curve[0].validation_loss == parent.curve[0].validation_loss);
    CHECK(done.curve[1].validation_loss != parent.curve[1].validation_loss);

    CnnEvaluator first = world.evaluator(0, this_run);
    search::Individual killed = heir_of(parent, 25);
    const search::Individual whole = world.train(first, killed);
    fs::remove(world.directory.training(killed.id));
    CnnEvaluator second = world.evaluator(0, this_run);
    second.start(killed, world.known);
    REQUIRE(fs::exists(world.directory.training(killed.id)));
    fs::remove(world.directory.after_epoch(parent.id, 1));
    CnnEvaluator third = world.evaluator(0, this_run);
    killed.attempt.restart = 1;
    const search::Individual resumed = world.train(third, killed);
    CHECK(resumed.inherited_epochs == 1);
    CHECK(equal_losses(resumed, whole));
}

TEST_CASE("an heir whose parent's snapshot is missing trains from the first epoch, and says so") {
    InheritingWorld world;
    CnnEvaluator evaluator = world.evaluator(0, this_run);
    const search::Individual anew = world.train(evaluator, heir_of(individual(1), 9));

    CHECK(anew.inherited_from == search::Id{});
    CHECK(anew.own_epochs() == 2);
    CHECK(equal_losses(anew, world.train(evaluator, 9)));
}

TEST_CASE("a rung keeps the snapshots of its best trainings, and a new one replaces the worst") {
    InheritingWorld world;
    search::Population population = population_of({at_rung(2, 0.5), at_rung(3, -0.5), at_rung(4, 0.7)});
    const RungSnapshots snapshots(world.directory, this_run);
    for (const std::uint64_t id : {2, 3, 4}) {
        store::write_model(world.directory.after_epoch({id}, 1), {individual(id), "", {}, this_run});
    }
    search::Individual mine = at_rung(1, 0.6);
    mine.epochs = 1;
    CHECK_FALSE(is_wanted_at_rung(mine, population, 2));
    mine = at_rung(1, 0.4);
    mine.epochs = 1;
    REQUIRE(is_wanted_at_rung(mine, population, 2));

    snapshots.keep({mine, "", {}, this_run}, population, 2);

    CHECK(world.keeps(1));
    CHECK_FALSE(world.keeps(2));
    CHECK(world.keeps(3));
    CHECK_FALSE(world.keeps(4));
}

TEST_CASE("remove_unused_rungs keeps the best of each rung, and the parents of unfinished heirs") {
    InheritingWorld world;
    search::Population population = population_of(
        {at_rung(1, 3), at_rung(2, 2), at_rung(3, 1), at_rung(4, 4), heir_of(at_rung(4, 4), 20), evaluated(5, 0)});
    for (const std::uint64_t id : {1, 2, 3, 4, 5, 6}) {
        store::write_model(world.directory.after_epoch({id}, 1), {individual(id), "", {}, this_run});
    }

    remove_unused_rungs(world.directory, population, options);

    for (const std::uint64_t id : {1, 5, 6}) {
        CHECK_FALSE(world.keeps(id));
    }
    for (const std::uint64_t id : {2, 3, 4}) {
        CHECK(world.keeps(id));
    }
}
