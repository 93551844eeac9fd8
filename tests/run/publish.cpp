// The contents of models/best.h5: the weights of the best individual of this run, and their results on the test set.
#include "finch/search/final_choice.hpp"

#include "run/world.hpp"
#include "support/captured_log.hpp"
#include "support/wrapped_device.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <stdexcept>
#include <vector>

using namespace finch;
using namespace finch::run;
using namespace finch::run::small;

namespace {

/// A CPU device that throws an exception like that of a library.
class RefusingDevice : public test::WrappedDevice {
public:
    [[nodiscard]] std::unique_ptr<backend::Operation> make(const backend::OperationShape&) override {
        throw std::runtime_error("could not create a primitive");
    }
};

}  // namespace

TEST_CASE("publish_weights ignores files of another run that have the id of the best individual") {
    World world;
    const search::Individual best = evaluated(3, 0.25);
    const search::Population population = population_of({best, evaluated(4, 0.25), evaluated(5, 0.5)});
    store::write_model(world.directory.best_model(), {best, "", {}, this_run + 1});
    world.keep(0, best, this_run + 1);

    CHECK_FALSE(publish_weights(world.directory, this_run, population.best()));
    world.keep(0, best, this_run);
    CHECK(publish_weights(world.directory, this_run, population.best()));

    std::vector<std::string> problems;
    const auto published = store::read_model(world.directory.best_model(), problems, OnDamage::leave);
    REQUIRE(published);
    CHECK(published->run == this_run);
    CHECK(published->individual.id == best.id);
}

TEST_CASE("publish_weights finds weights that were replaced by an individual without a record") {
    World world;
    const search::Individual best = evaluated(3, 0.25);
    world.keep(0, best, this_run);
    world.keep(0, evaluated(9, 0.125), this_run);  // no record contains this individual

    CHECK(publish_weights(world.directory, this_run, population_of({best}).best()));
    CHECK(world.published() == 3);
}

TEST_CASE("publish_best finds weights of any worker, and tests them only once") {
    World world;
    CnnEvaluator evaluator = world.evaluator(6, this_run);
    const search::Individual best = world.train(evaluator, 3);
    const search::Population population = population_of({best});

    const auto said =
        publish_best(world.directory, this_run, world.config, world.datasets, *world.device, population.best());
    const auto again =
        publish_best(world.directory, this_run, world.config, world.datasets, *world.device, population.best());

    REQUIRE(said);
    CHECK(said->find("test accuracy") != std::string::npos);
    CHECK_FALSE(again);
    CHECK(world.published() == 3);
}

TEST_CASE("all repeats keep their weights until remove_spare_weights keeps only the weights of the best repeat") {
    World world;
    CnnEvaluator evaluator = world.evaluator(0, this_run);
    const search::Individual original = world.train(evaluator, 3);
    world.known = population_of({evaluated(1, -1)});  // better than all other individuals
    std::vector<search::Individual> all{original};
    for (const std::uint64_t id : {11, 12, 13}) {
        search::Individual repeat = individual(id);
        repeat.genome = original.genome;
        repeat.bred_by = search::Operator::repeat;
        repeat.parents[0] = original.id;
        all.push_back(world.train(evaluator, repeat));
        CHECK(world.held(world.directory.repeat(repeat.id)) == id);
    }
    CHECK(world.kept(0) == 3);
    const search::Population population = population_of(all);
    const search::Individual* winner = search::chosen(population, search::FinalChoice{1, 3});
    REQUIRE(winner->is_repeat());
    CHECK(original.parameters > 0);

    CHECK(publish_weights(world.directory, this_run, winner));
    remove_spare_weights(world.directory, population);

    CHECK(world.published() == winner->id.value);
    for (std::size_t i = 1; i < all.size(); ++i) {
        const bool is_there = std::filesystem::exists(world.directory.repeat(all[i].id));
        CHECK(is_there == (all[i].id == winner->id));
    }
}

TEST_CASE("publish_best runs the test for weights that publish_weights has published without a test") {
    World world;
    CnnEvaluator evaluator = world.evaluator(0, this_run);
    const search::Population population = population_of({world.train(evaluator, 3)});

    REQUIRE(publish_weights(world.directory, this_run, population.best()));
    CHECK(world.published() == 3);
    CHECK(publish_best(world.directory, this_run, world.config, world.datasets, *world.device, population.best()));
}

TEST_CASE("published results cover the test set and the validation set, with the index of each sample") {
    World world;
    CnnEvaluator evaluator = world.evaluator(0, this_run);
    const search::Individual best = world.train(evaluator, 3);
    const search::Population population = population_of({best});

    REQUIRE(publish_best(world.directory, this_run, world.config, world.datasets, *world.device, population.best()));

    const NamedArrays arrays = world.published_arrays();
    const auto whole = [&arrays](const char* name) {
        return std::get<std::vector<std::int64_t>>(find_array(arrays, name).values);
    };
    const train::Recipe recipe = world.config.recipe(best.genome, best.id.value);
    CHECK(whole("validation/index") == data::split(recipe.data, world.datasets.training, world.config.seed).validation);
    for (std::size_t row = 0; row < 20; ++row) {
        const auto index = static_cast<std::size_t>(whole("validation/index")[row]);
        CHECK(whole("validation/truth")[row] == world.datasets.training.labels[index]);
        CHECK(whole("test/index")[row] == static_cast<std::int64_t>(row));
        CHECK(whole("test/truth")[row] == world.datasets.test.labels[row]);
    }
    CHECK(std::get<std::vector<double>>(find_array(arrays, "validation/accuracy").values).front() ==
          doctest::Approx(best.accuracy));
    CHECK(find_array(arrays, "validation/scores").shape == std::vector<std::int64_t>{20, 10});
    CHECK(find_array(arrays, "test/confusion").shape == std::vector<std::int64_t>{10, 10});
}

TEST_CASE("publish_best measures a model again if tables are missing, and replaces its old results") {
    World world;
    CnnEvaluator evaluator = world.evaluator(0, this_run);
    const search::Population population = population_of({world.train(evaluator, 3)});
    REQUIRE(publish_weights(world.directory, this_run, population.best()));
    std::vector<std::string> problems;
    auto file = store::read_model(world.directory.best_model(), problems, OnDamage::leave);
    REQUIRE(file);
    file->arrays.push_back({"test/loss", {}, std::vector<double>{-1}});
    file->arrays.push_back({"test/predictions", {2}, std::vector<std::int64_t>{1, 2}});
    store::write_model(world.directory.best_model(), *file);

    CHECK(publish_best(world.directory, this_run, world.config, world.datasets, *world.device, population.best()));

    const NamedArrays arrays = world.published_arrays();
    const auto is_loss = [](const NamedArray& array) { return array.name == "test/loss"; };
    CHECK(std::count_if(arrays.begin(), arrays.end(), is_loss) == 1);
    CHECK(std::get<std::vector<double>>(find_array(arrays, "test/loss").values).front() > 0);
    CHECK(find_array(arrays, "test/predictions").shape == std::vector<std::int64_t>{20});
    CHECK_FALSE(
        publish_best(world.directory, this_run, world.config, world.datasets, *world.device, population.best()));
}

TEST_CASE("a library failure during the test is only logged, and the next start tests again") {
    World world;
    CnnEvaluator evaluator = world.evaluator(0, this_run);
    const search::Population population = population_of({world.train(evaluator, 3)});
    RefusingDevice refusing;
    const auto publish = [&](backend::Device& device) {
        return publish_or_warn(world.directory, this_run, world.config, world.datasets, device, population.best());
    };

    {
        const testing::CapturedLog log;
        CHECK_FALSE(publish(refusing));
        CHECK(log.text().find("could not create a primitive") != std::string::npos);
    }
    CHECK(world.published() == 3);

    const testing::CapturedLog log;
    CHECK(publish(*world.device));
    CHECK(log.text().find("test accuracy") != std::string::npos);
}

TEST_CASE("remove_finished_trainings removes only snapshots of finished individuals, with their predecessors") {
    World world;
    const search::Individual finished = evaluated(3, 0.25);
    const search::Individual unfinished = individual(4);
    const search::Individual unknown = individual(5);
    for (const search::Individual& one : {finished, unfinished, unknown}) {
        testing::put_contents(world.directory.training(one.id), "a snapshot");
        testing::put_contents(world.directory.training(one.id).string() + previous_suffix, "the one before");
    }

    remove_finished_trainings(world.directory, population_of({finished, unfinished}));

    for (const auto& [one, stays] :
         {std::pair{finished, false}, std::pair{unfinished, true}, std::pair{unknown, true}}) {
        CAPTURE(one.id.value);
        CHECK(std::filesystem::exists(world.directory.training(one.id)) == stays);
        CHECK(std::filesystem::exists(world.directory.training(one.id).string() + previous_suffix) == stays);
    }
}
