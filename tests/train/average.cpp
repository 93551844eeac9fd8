// Tests of the averaged weights, which a training validates and keeps.
#include "finch/base/error.hpp"

#include "world.hpp"

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

train::Recipe averaged_recipe(std::optional<double> decay) {
    train::Recipe recipe = small_recipe(17);
    recipe.model = residual_model();
    recipe.training.optimizer = backend::Adam{};
    recipe.training.learning_rate = 0.01;
    recipe.training.average = decay;
    return recipe;
}

/// Steps of an epoch: 23 samples to train on and 17 samples to validate on, in batches of 8.
constexpr std::int64_t training_steps = 3;
constexpr std::int64_t epoch_steps = 6;

NamedArrays behind(const NamedArrays& snapshot, const std::string& prefix) {
    NamedArrays arrays;
    for (NamedArray array : snapshot) {
        if (array.name.starts_with(prefix)) {
            array.name.erase(0, prefix.size());
            arrays.push_back(std::move(array));
        }
    }
    return arrays;
}

bool same(const NamedArrays& a, const NamedArrays& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const NamedArray& one, const NamedArray& other) {
        return one.name == other.name && one.values == other.values;
    });
}

/// Returns the weights and the optimizer's state. These do not depend on the average or on validation losses.
NamedArrays trained(const NamedArrays& snapshot) {
    NamedArrays arrays = behind(snapshot, "weights/");
    for (NamedArray& array : behind(snapshot, "optimizer/")) {
        arrays.push_back(std::move(array));
    }
    return arrays;
}

}  // namespace

TEST_CASE("average: each step computes decay · average + (1 − decay) · weights; the first step copies the weights") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(40);
    for (const double decay : {0.95, 0.3}) {
        CAPTURE(decay);
        Run run(group, datasets, averaged_recipe(decay));
        CHECK(tensors(run->snapshot(), "average_weights/").empty());
        std::vector<double> expected;
        for (int step = 0; step < 3 * epoch_steps - 1; ++step) {
            CAPTURE(step);
            (void)run->advance(1);
            const NamedArrays snapshot = run->snapshot();
            const std::vector<float> weights = tensors(snapshot, "weights/");
            const std::vector<float> found = tensors(snapshot, "average_weights/");
            if (step == 0) {
                expected.assign(weights.begin(), weights.end());
                CHECK(found == weights);
            }
            const bool trains = step % epoch_steps < training_steps;
            double apart = 0;
            REQUIRE(found.size() == expected.size());
            for (std::size_t i = 0; i < expected.size(); ++i) {
                if (trains) {
                    expected[i] = decay * expected[i] + (1 - decay) * static_cast<double>(weights[i]);
                }
                apart = std::max(apart, std::abs(static_cast<double>(found[i]) - expected[i]));
            }
            CHECK(apart < 1e-6);
            CHECK((step == 0 || difference(found, weights) > 1e-4));
        }
        CHECK(tensors(run->snapshot(), "average_weights/1.running").size() == 8);
    }
}

TEST_CASE("average: validation uses the averaged weights; the best epoch's averaged weights are kept and measured") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(40);
    const auto recipe = averaged_recipe(0.8);
    const data::Dataset validation = validation_set(recipe, datasets);
    const auto device = backend::make_cpu_device(1);
    const auto loss_of = [&](const NamedArrays& weights) {
        return train::measure(*device, group, recipe, weights, validation, 8).loss;
    };
    Run run(group, datasets, recipe);
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
        (void)run->advance(epoch_steps);
        const NamedArrays snapshot = run->snapshot();

        CHECK(run->curve().at(epoch).validation_loss ==
              doctest::Approx(loss_of(behind(snapshot, "average_weights/"))).epsilon(1e-6));
        CHECK(std::abs(run->curve()[epoch].validation_loss - loss_of(weights_of(snapshot))) > 1e-4);
        if (run->best_epoch() == static_cast<std::int64_t>(epoch + 1)) {
            CHECK(same(run->best_weights(), behind(snapshot, "average_weights/")));
        }
        CHECK(run->measure(validation).loss == doctest::Approx(loss_of(run->best_weights())).epsilon(1e-6));
        CHECK(equal_but_for_seconds(run->snapshot(), snapshot));
    }
    CHECK(run->best_epoch() > 0);
}

TEST_CASE("average: after a measurement in the middle of a validation, the validation still uses the average") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(40);
    const auto recipe = averaged_recipe(0.8);
    Run undisturbed(group, datasets, recipe);
    (void)undisturbed.finish();
    Run run(group, datasets, recipe);
    (void)run->advance(epoch_steps + training_steps + 1);

    (void)run->measure(datasets.training);
    (void)run.finish();

    CHECK(equal_but_for_seconds(run->snapshot(), undisturbed->snapshot()));
}

TEST_CASE("average: the trained weights do not depend on it; without an average a snapshot has no average arrays") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(40);
    Run plain(group, datasets, averaged_recipe({}));
    Run averaged(group, datasets, averaged_recipe(0.9));
    (void)plain.finish();
    (void)averaged.finish();

    CHECK(same(trained(plain->snapshot()), trained(averaged->snapshot())));
    CHECK(plain->curve().back().training_loss == averaged->curve().back().training_loss);
    CHECK(behind(plain->snapshot(), "average").empty());
}

TEST_CASE("average: a decay of 0 gives the same bits as a training without an average") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(40);
    Run plain(group, datasets, averaged_recipe({}));
    Run averaged(group, datasets, averaged_recipe(0));
    (void)plain.finish();
    (void)averaged.finish();

    NamedArrays rest = averaged->snapshot();
    CHECK(same(behind(rest, "average_weights/"), weights_of(rest)));
    std::erase_if(rest, [](const NamedArray& array) { return array.name.starts_with("average"); });
    CHECK(equal_but_for_seconds(rest, plain->snapshot()));
    CHECK(same(plain->best_weights(), averaged->best_weights()));
}

TEST_CASE("average: a training that begins with given weights starts its average with them") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(40);
    auto recipe = averaged_recipe(0.75);
    Run parent(group, datasets, recipe);
    (void)parent.finish();
    const NamedArrays given = parent->best_weights();
    recipe.individual = 78;
    Run child(group, datasets, recipe);
    child->begin_with(given);
    CHECK(tensors(child->best_weights(), "") == tensors(given, ""));
    Run restored(group, datasets, recipe);
    restored->restore(child->snapshot());

    (void)child->advance(1);
    (void)restored->advance(1);

    const std::vector<float> start = tensors(given, "");
    const std::vector<float> weights = tensors(child->snapshot(), "weights/");
    std::vector<float> expected;
    for (std::size_t i = 0; i < start.size(); ++i) {
        expected.push_back(
            static_cast<float>(0.75 * static_cast<double>(start[i]) + 0.25 * static_cast<double>(weights[i])));
    }
    CHECK(difference(tensors(child->snapshot(), "average_weights/"), expected) < 1e-6);
    CHECK(equal_but_for_seconds(restored->snapshot(), child->snapshot()));
}

TEST_CASE("average: a training resumed from a snapshot at any step ends with the same bits") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(40);
    const auto recipe = averaged_recipe(0.9);
    Run whole(group, datasets, recipe);
    (void)whole.finish();
    for (std::int64_t steps = 0; steps <= epoch_steps + 4; ++steps) {
        CAPTURE(steps);
        Run first(group, datasets, recipe);
        (void)first->advance(steps);
        Run second(group, datasets, recipe);
        second->restore(first->snapshot());
        CHECK(equal_but_for_seconds(second->snapshot(), first->snapshot()));

        (void)second.finish();

        CHECK(equal_but_for_seconds(second->snapshot(), whole->snapshot()));
    }
}

TEST_CASE("average: a snapshot without an average, or with a wrong step count, is rejected and changes nothing") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(40);
    Run run(group, datasets, averaged_recipe(0.9));
    (void)run->advance(2);
    const NamedArrays before = run->snapshot();
    Run plain(group, datasets, averaged_recipe({}));
    (void)plain->advance(2);
    NamedArrays other = before;
    for (NamedArray& array : other) {
        if (array.name == "average/taken") {
            array.values = std::vector<std::int64_t>{4};
        }
    }

    CHECK_THROWS_WITH_AS(run->restore(plain->snapshot()), doctest::Contains("average/taken"), FileError);
    CHECK_THROWS_WITH_AS(run->restore(other), doctest::Contains("average is of 4 weights"), FileError);

    CHECK(equal_but_for_seconds(run->snapshot(), before));
}
