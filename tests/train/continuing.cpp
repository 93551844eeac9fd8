// Tests of a training that continues the training of another individual. Run with 2 ranks as one group.
#include "world.hpp"

#include <utility>

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

train::Recipe recipe_of(std::uint64_t individual, double learning_rate = 0.05) {
    auto recipe = small_recipe(40);
    recipe.individual = individual;
    recipe.training.epochs = 4;
    recipe.training.learning_rate = learning_rate;
    recipe.training.average = 0.9;
    return recipe;
}

/// Trains `run` up to the end of `epochs` epochs.
NamedArrays snapshot_after(Run& run, std::size_t epochs) {
    run->pause_after_epochs();
    while (run->curve().size() < epochs) {
        static_cast<void>(run->advance(1000));
    }
    return run->snapshot();
}

}  // namespace

TEST_CASE("advance: with pauses it returns at the end of each epoch, and the results keep their bits") {
    const comm::Group group = first_ranks(2);
    const auto datasets = bright_rows(120);
    Run whole(group, datasets, recipe_of(1));
    Run paused(group, datasets, recipe_of(1));
    (void)whole.finish();

    paused->pause_after_epochs();
    for (std::size_t epoch = 1; epoch <= 4; ++epoch) {
        (void)paused->advance(1000);
        CHECK(paused->curve().size() == epoch);
    }

    CHECK(equal_but_for_seconds(paused->snapshot(), whole->snapshot()));
}

TEST_CASE("continue_from: with the same individual and recipe it ends with the same weights and curve") {
    const comm::Group group = first_ranks(2);
    const auto datasets = bright_rows(120);
    Run whole(group, datasets, recipe_of(1));
    (void)whole.finish();
    Run parent(group, datasets, recipe_of(1));
    const NamedArrays snapshot = snapshot_after(parent, 2);

    Run heir(group, datasets, recipe_of(1));
    heir->continue_from(snapshot);
    CHECK(heir.finish() == State::finished);

    NamedArrays expected = whole->snapshot();
    for (NamedArray& array : expected) {
        if (array.name == "inherited_epochs") {
            array.values = std::vector<std::int64_t>{2};
        }
    }
    CHECK(equal_but_for_seconds(heir->snapshot(), expected));
}

TEST_CASE(
    "continue_from: an heir has its own learning rate, batches and seed, and counts its own samples and seconds") {
    const comm::Group group = first_ranks(2);
    const auto datasets = bright_rows(120);
    Run parent(group, datasets, recipe_of(1));
    const NamedArrays snapshot = snapshot_after(parent, 2);
    auto recipe = recipe_of(2, 0.02);
    recipe.training.batch_size = 5;

    Run heir(group, datasets, recipe);
    heir->continue_from(snapshot);
    CHECK(heir->training_seconds() == 0);
    CHECK(heir->samples_trained() == 0);
    CHECK(heir->progress() == 0.5);
    (void)heir.finish();

    CHECK(heir->global_batch() == 5);
    CHECK(heir->samples_trained() == 2 * 80);
    REQUIRE(heir->curve().size() == 4);
    for (std::size_t epoch = 0; epoch < 4; ++epoch) {
        CHECK(heir->curve()[epoch].learning_rate == (epoch < 2 ? 0.05 : 0.02));
        CHECK((heir->curve()[epoch].training_loss == parent->curve()[std::min<std::size_t>(epoch, 1)].training_loss) ==
              (epoch < 2));
    }
    const double own_seconds = heir->curve()[2].seconds + heir->curve()[3].seconds;
    CHECK(heir->training_seconds() > 0);
    if (group.is_leader()) {  // the curve has the leader's seconds
        CHECK(heir->training_seconds() == doctest::Approx(own_seconds));
    }

    Run first(group, datasets, recipe);
    first->continue_from(snapshot);
    (void)first->advance(7);
    Run resumed(group, datasets, recipe);
    resumed->restore(first->snapshot());
    (void)resumed.finish();
    CHECK(equal_but_for_seconds(resumed->snapshot(), heir->snapshot()));
}

TEST_CASE("continue_from: refuses a snapshot in the middle of an epoch") {
    const comm::Group group = first_ranks(2);
    const auto datasets = bright_rows(120);
    Run parent(group, datasets, recipe_of(1));
    (void)parent->advance(3);
    const NamedArrays snapshot = parent->snapshot();

    Run heir(group, datasets, recipe_of(2));
    CHECK_THROWS_WITH_AS(heir->continue_from(snapshot), "the snapshot of an epoch's end is in epoch 1", FileError);
}

TEST_CASE("can_continue: the same tensors, optimizer states and samples, and an epoch is left") {
    const nn::SampleShape input{image_size, image_size, 1};
    const train::Recipe parent = recipe_of(1);
    const auto fits = [&](auto change, std::int64_t epochs = 2) {
        train::Recipe child = recipe_of(2);
        change(child);
        return train::can_continue(child, parent, epochs, input, classes);
    };

    CHECK(fits([](train::Recipe& child) { child.training.learning_rate = 1; }));
    CHECK(fits([](train::Recipe& child) { child.training.batch_size = 20; }));
    CHECK(fits([](train::Recipe& child) { child.training.optimizer = backend::Sgd{.momentum = 0.5}; }));
    CHECK(fits([](train::Recipe& child) { child.data.augmentation.mirror = true; }));
    CHECK(fits(
        [](train::Recipe& child) { std::get<nn::ConvLayer>(child.model[0]).activation = backend::Activation::tanh; }));
    CHECK_FALSE(fits([](train::Recipe& child) { child.training.optimizer = backend::Sgd{.momentum = 0}; }));
    CHECK_FALSE(fits([](train::Recipe& child) { child.training.optimizer = backend::AdamW{}; }));
    CHECK_FALSE(fits([](train::Recipe& child) { child.training.average.reset(); }));
    CHECK_FALSE(fits([](train::Recipe& child) { child.data.training_samples = 50; }));
    CHECK_FALSE(fits([](train::Recipe& child) { std::get<nn::ConvLayer>(child.model[0]).channels = 5; }));
    CHECK_FALSE(fits([](train::Recipe&) {}, 4));
}
