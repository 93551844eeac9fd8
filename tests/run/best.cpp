// Tests that the kept weights and results are those of the best individual of this run, by search::better().
#include "run/world.hpp"
#include "support/captured_log.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <vector>

using namespace finch;
using namespace finch::run;
using namespace finch::run::small;

TEST_CASE("of two individuals with equal loss, the weights of the smaller id are kept") {
    World world;
    CnnEvaluator first = world.evaluator(0, this_run);
    const search::Individual trained = world.train(first, 5);
    CnnEvaluator smaller = world.evaluator(1, this_run);
    CnnEvaluator larger = world.evaluator(2, this_run);

    world.known = population_of({evaluated(6, trained.loss)});
    const search::Individual again = world.train(smaller, 5);
    world.known = population_of({evaluated(4, trained.loss)});
    static_cast<void>(world.train(larger, 5));

    CHECK(again.loss == trained.loss);
    CHECK(world.kept(1) == 5);
    CHECK(world.kept(2) == 0);
}

TEST_CASE("the first weights of a later start keep those of an earlier start as their predecessor") {
    World world;
    world.keep(0, evaluated(9, 0.5), this_run);
    CnnEvaluator evaluator = world.evaluator(0, this_run);
    search::Individual later = individual(3);
    later.attempt.restart = 1;

    static_cast<void>(world.train(evaluator, later));

    CHECK(world.kept(0) == 3);
    CHECK(World::held(world.directory.worker_best(0).string() + previous_suffix) == 9);
}

TEST_CASE("a worker keeps the weights of its own best individual, even if its leader does not know the result") {
    World world;
    std::vector<std::uint64_t> ids{1, 2, 3, 4};
    for (int worker = 0; worker < 2; ++worker) {
        CAPTURE(worker);
        CnnEvaluator evaluator = world.evaluator(worker, this_run);
        std::vector<search::Individual> all;
        for (const std::uint64_t id : ids) {
            all.push_back(world.train(evaluator, id));
        }

        CHECK(world.kept(worker) == population_of(all).best()->id.value);

        std::reverse(ids.begin(), ids.end());  // in one of the two orders, the last individual is not the best
    }
}

TEST_CASE("the loss of an individual is the validation error of its best epoch") {
    World world;
    CnnEvaluator evaluator = world.evaluator(0, this_run);

    const search::Individual one = world.train(evaluator, 1);

    double smallest = 1;
    for (const Epoch& epoch : one.curve) {
        smallest = std::min(smallest, 1 - epoch.validation_accuracy);
    }
    CHECK(one.loss == smallest);
    CHECK(one.accuracy == doctest::Approx(1 - smallest));
    CHECK(one.training_seconds > 0);
    CHECK(one.samples_per_second == doctest::Approx(2 * 100 / one.training_seconds));
}

TEST_CASE("a snapshot of another run is reported and ignored; a snapshot of this run is resumed") {
    World world;
    CnnEvaluator evaluator = world.evaluator(0, this_run);
    evaluator.start(individual(1), world.known);
    while (evaluator.training(0).samples_trained() == 0) {
        REQUIRE(evaluator.advance(world.known).empty());
    }
    static_cast<void>(evaluator.checkpoint());
    const std::int64_t trained = evaluator.training(0).samples_trained();
    const double seconds = evaluator.training(0).training_seconds();

    search::Individual again = individual(1);
    again.attempt.restart = 1;  // only an individual of an earlier start can have a snapshot
    CnnEvaluator other = world.evaluator(0, this_run + 1);
    const testing::CapturedLog log;
    other.start(again, world.known);
    CHECK(other.training(0).samples_trained() == 0);
    CHECK(log.text().find(world.directory.training({1}).string() + ": it is of another run") != std::string::npos);

    CnnEvaluator same = world.evaluator(0, this_run);
    same.start(again, world.known);
    CHECK(same.training(0).samples_trained() == trained);
    CHECK(same.training(0).training_seconds() == seconds);
}

TEST_CASE("pruned trainings keep no weights, and nothing is published before the first complete training") {
    World world;
    world.config.pruning = search::HalvingOptions{};
    CnnEvaluator evaluator = world.evaluator(0, this_run);
    search::Individual good = evaluated(9, -1);
    good.pruning.edit().losses[0] = -1;
    world.known = population_of({good});

    const search::Individual pruned = world.train(evaluator, 1);
    CHECK(pruned.outcome == search::Outcome::pruned);
    CHECK(pruned.epochs == 1);
    CHECK(pruned.curve.size() == 1);
    CHECK(pruned.loss == pruned.pruning->losses[0]);
    CHECK(pruned.pruning->threshold == -1);
    CHECK(world.kept(0) == 0);
    const search::Population without = population_of({pruned});
    const search::Individual* const nothing = search::chosen(without, std::nullopt);
    CHECK(nothing == nullptr);
    CHECK(publish_weights(world.directory, this_run, nothing));
    CHECK_FALSE(publish_best(world.directory, this_run, world.config, world.datasets, *world.device, nothing));
    CHECK(world.published() == 0);

    search::Individual without_rungs = pruned;  // so that the next training continues
    without_rungs.pruning = {};
    world.known = population_of({without_rungs});
    const search::Individual complete = world.train(evaluator, 2);
    CHECK(complete.outcome == search::Outcome::evaluated);
    CHECK(world.kept(0) == 2);
    const search::Population both = population_of({pruned, complete});
    CHECK(publish_weights(world.directory, this_run, search::chosen(both, std::nullopt)));
    CHECK(world.published() == 2);
}

TEST_CASE("a repeat for the final choice is never pruned") {
    World world;
    world.config.pruning = search::HalvingOptions{};
    CnnEvaluator evaluator = world.evaluator(0, this_run);
    world.known = population_of({evaluated(9, -1)});
    search::Individual repeated = individual(1);
    repeated.bred_by = search::Operator::repeat;

    CHECK(world.train(evaluator, repeated).outcome == search::Outcome::evaluated);
}

TEST_CASE("a child of equal shape inherits its parent's best weights; other children start at random") {
    World world("inherit: true, ");
    CnnEvaluator mother = world.evaluator(0, this_run);
    const search::Individual parent = world.train(mother, 1);
    CHECK(parent.inherited_from == search::Id{});
    CnnEvaluator evaluator = world.evaluator(1, this_run);
    CnnEvaluator of_other_run = world.evaluator(2, this_run + 1);
    const auto child_of = [&world](CnnEvaluator& trains, search::Id first_parent, std::uint64_t id,
                                   search::Operator bred_by = search::Operator::crossover) {
        search::Individual child = individual(id);
        child.parents = {first_parent, {2}};
        child.bred_by = bred_by;
        return world.train(trains, child);
    };

    const search::Individual child = child_of(evaluator, parent.id, 9);
    CHECK(child.genome == parent.genome);
    CHECK(child.inherited_from == parent.id);
    CHECK(child.curve.front().training_loss < parent.curve.front().training_loss);
    CHECK(child_of(evaluator, parent.id, 10).inherited_from == search::Id{});  // has another number of channels
    CHECK(child_of(evaluator, {7}, 17).inherited_from == search::Id{});        // individual 7 does not exist
    CHECK(child_of(evaluator, {0}, 25).inherited_from == search::Id{});
    CHECK(child_of(of_other_run, parent.id, 33).inherited_from == search::Id{});
    CHECK(child_of(evaluator, parent.id, 41, search::Operator::repeat).inherited_from == search::Id{});
    CHECK_FALSE(std::filesystem::exists(world.directory.weights({41})));
    World without;
    CnnEvaluator plain = without.evaluator(0, this_run);
    static_cast<void>(without.train(plain, 1));
    CHECK_FALSE(std::filesystem::exists(without.directory.weights({1})));
}

TEST_CASE("a leader keeps the weights of its eight best; remove_unused_weights keeps each island's eight best") {
    World world;
    ParentWeights weights(world.directory, this_run);
    std::vector<search::Individual> all;
    const auto kept = [&] {
        std::vector<std::uint64_t> ids;
        for (std::uint64_t id = 1; id <= 12; ++id) {
            if (ParentWeights(world.directory, this_run).find({id})) {
                ids.push_back(id);
            }
        }
        return ids;
    };
    for (const std::uint64_t id : {5, 1, 2, 10, 3, 9, 4, 8, 6, 7}) {
        all.push_back(evaluated(id, 0.1 * static_cast<double>(id)));
        weights.keep({all.back(), "", {{"x", {}, std::vector<float>{1}}}, this_run});
    }
    CHECK(kept() == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8});
    CHECK_FALSE(ParentWeights(world.directory, this_run + 1).find({1}));

    for (std::uint64_t id = 0; id < 6; ++id) {
        all.push_back(evaluated(100 + id, 0.25));
    }
    remove_unused_weights(world.directory, population_of(all));

    CHECK(kept() == std::vector<std::uint64_t>{1, 2});
}
