// Tests of a training on one rank.
#include "finch/base/error.hpp"
#include "finch/nn/model.hpp"

#include "world.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

/// Computes the gradient of the mean loss over the images `indices`, one image at a time, summed in double. The result
/// is in the plan's order. This is an independent check: a batch of 1 without the class Training.
std::vector<double> mean_gradient(const train::Recipe& recipe, const data::Dataset& dataset,
                                  const std::vector<std::int64_t>& indices, const NamedArrays& weights) {
    const auto device = backend::make_cpu_device(1);
    nn::Model model(*device, nn::plan_model(recipe.model, {image_size, image_size, 1}, classes, 1));
    model.set_state(nn::read_tensors(model.plan(), weights));
    const auto step = device->make_step_context({.pixels = dataset.pixels,
                                                 .labels = dataset.labels,
                                                 .pixels_per_image = dataset.pixels_per_image(),
                                                 .mean = {static_cast<float>(recipe.data.mean[0])},
                                                 .deviation = {static_cast<float>(recipe.data.deviation[0])}},
                                                1);
    std::vector<double> sum(static_cast<std::size_t>(model.plan().parameters));
    std::vector<float> grads(sum.size());
    for (const std::int64_t index : indices) {
        step->fill(std::vector{index}, std::vector<backend::StepScalars>{{.grad_scale = 1.0F}});
        const backend::Pass pass{.step = *step};
        device->next_step(pass.step);
        device->load_batch(pass.step, model.input());
        model.forward(pass);
        device->softmax_cross_entropy(pass.step, model.logits(), classes, model.grad_logits());
        model.backward(pass, [](std::int64_t /*begin*/, std::int64_t /*end*/) {});
        device->download(model.grads().data(), grads);
        for (std::size_t i = 0; i < sum.size(); ++i) {
            sum[i] += static_cast<double>(grads[i]) / static_cast<double>(indices.size());
        }
    }
    return sum;
}

}  // namespace

TEST_CASE("training: learns to classify the images, and the curve has every epoch") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(120);
    const auto recipe = small_recipe(40);
    Run run(group, datasets, recipe);

    CHECK(run.finish() == State::finished);

    const auto& curve = run->curve();
    REQUIRE(curve.size() == 3);
    CHECK(curve[2].epoch == 3);
    CHECK(curve[2].validation_loss < 0.5 * curve[0].training_loss);
    CHECK(curve[2].validation_accuracy > 0.9);
    CHECK(curve[0].seconds > 0);
    CHECK(run->samples_trained() == 3 * 80);
    CHECK(run->progress() == 1);
}

TEST_CASE("training: each step uses the mean gradient of its batch, also in a smaller last batch") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(31);
    auto recipe = small_recipe(10);
    recipe.training.optimizer = backend::Sgd{};
    recipe.training.learning_rate = 1;
    const auto split = data::split(recipe.data, datasets.training, recipe.seed);
    const auto order = data::epoch_order(recipe.seed, recipe.individual, 0, 21);
    Run run(group, datasets, recipe);

    // The 21 samples form batches of 8, 8 and 5.
    for (std::size_t begin = 0; begin < 21; begin += 8) {
        std::vector<std::int64_t> indices;
        for (std::size_t i = begin; i < std::min<std::size_t>(begin + 8, 21); ++i) {
            indices.push_back(split.training[order[i]]);
        }
        const auto before = run->snapshot();
        const auto expected = mean_gradient(recipe, datasets.training, indices, weights_of(before));

        (void)run->advance(1);

        const auto start = arena_of(run->plan(), before);
        const auto end = arena_of(run->plan(), run->snapshot());
        double largest = 0;
        double apart = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const double moved = static_cast<double>(start[i]) - static_cast<double>(end[i]);
            largest = std::max(largest, std::abs(expected[i]));
            apart = std::max(apart, std::abs(moved - expected[i]));
        }
        CHECK(apart < 1e-5 * largest);
    }
}

TEST_CASE("training: the number of steps per call changes no bit") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(70);
    const auto recipe = small_recipe(21);
    Run whole(group, datasets, recipe);
    Run cut(group, datasets, recipe);

    (void)whole.finish();
    std::int64_t steps = 1;
    while (cut->advance(steps) == State::running) {
        steps = 1 + steps % 4;
    }

    CHECK(equal_but_for_seconds(whole->snapshot(), cut->snapshot()));
}

TEST_CASE("training: resumed from a snapshot at any step, it ends with the same bits") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(40);
    auto recipe = small_recipe(17);
    for (const backend::Optimizer& optimizer :
         {backend::Optimizer(backend::Sgd{.momentum = 0.9}), backend::Optimizer(backend::Adam{}),
          backend::Optimizer(backend::Adadelta{})}) {
        recipe.training.optimizer = optimizer;
        Run whole(group, datasets, recipe);
        (void)whole.finish();
        const NamedArrays expected = whole->snapshot();

        // 23 and 17 samples in batches of 8 give 6 steps per epoch. So the steps below stop in training, in validation
        // and at the end of an epoch.
        for (std::int64_t steps = 0; steps <= 8; ++steps) {
            CAPTURE(steps);
            Run first(group, datasets, recipe);
            (void)first->advance(steps);
            Run second(group, datasets, recipe);
            second->restore(first->snapshot());
            CHECK(second->progress() == first->progress());
            (void)second.finish();
            CHECK(equal_but_for_seconds(second->snapshot(), expected));
        }
    }
}

TEST_CASE("training: a finished training is still finished after a restore") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(40);
    Run run(group, datasets, small_recipe(17));
    (void)run.finish();
    Run restored(group, datasets, small_recipe(17));

    restored->restore(run->snapshot());

    CHECK(restored->state() == State::finished);
    CHECK(restored->advance(100) == State::finished);
    CHECK(restored->curve().size() == 3);
    CHECK(restored->best_epoch() == run->best_epoch());
}

TEST_CASE("training: begins with given weights, and rejects weights of another model") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(40);
    auto recipe = small_recipe(17);
    Run parent(group, datasets, recipe);
    (void)parent.finish();
    recipe.individual = 78;
    Run child(group, datasets, recipe);

    child->begin_with(parent->best_weights());

    CHECK(tensors(child->snapshot(), "weights/") == tensors(parent->best_weights(), ""));
    CHECK(child.finish() == State::finished);
    CHECK(child->curve()[0].training_loss < parent->curve()[0].training_loss);
    recipe.model[0] = nn::ConvLayer{.channels = 5, .kernel = 3};
    Run other(group, datasets, recipe);
    CHECK_THROWS_AS(other->begin_with(parent->best_weights()), FileError);
}

TEST_CASE("training: the learning rate follows the schedule by epoch") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(30);
    auto recipe = small_recipe(10);
    recipe.training.learning_rate = 0.04;
    recipe.training.schedule = nn::StepSchedule{.every = 1, .factor = 0.5};
    Run run(group, datasets, recipe);

    (void)run.finish();

    REQUIRE(run->curve().size() == 3);
    CHECK(run->curve()[0].learning_rate == doctest::Approx(0.04));
    CHECK(run->curve()[1].learning_rate == doctest::Approx(0.02));
    CHECK(run->curve()[2].learning_rate == doctest::Approx(0.01));
}

TEST_CASE("training: the best epoch's weights are kept, and measuring them gives that epoch's loss") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    auto recipe = small_recipe(20);
    recipe.training.epochs = 6;
    recipe.training.learning_rate = 0.6;  // so large that some later epochs are worse
    Run run(group, datasets, recipe);
    (void)run.finish();
    const data::Dataset validation = validation_set(recipe, datasets);
    const NamedArrays before = run->snapshot();

    const auto measured = run->measure(validation);

    std::int64_t best = 1;
    for (const auto& epoch : run->curve()) {
        if (epoch.validation_loss < run->curve()[static_cast<std::size_t>(best - 1)].validation_loss) {
            best = epoch.epoch;
        }
    }
    CHECK(run->best_epoch() == best);
    CHECK(best < 6);
    CHECK(measured.samples == 20);
    CHECK(measured.loss ==
          doctest::Approx(run->curve()[static_cast<std::size_t>(best - 1)].validation_loss).epsilon(1e-9));
    std::int64_t correct = 0;
    for (std::size_t i = 0; i < validation.labels.size(); ++i) {
        correct += measured.predictions[i] == validation.labels[i] ? 1 : 0;
    }
    CHECK(measured.accuracy == doctest::Approx(static_cast<double>(correct) / 20));
    double loss = 0;
    for (std::size_t i = 0; i < validation.labels.size(); ++i) {
        const float* scores = measured.scores.data() + i * classes;
        const auto label = static_cast<std::size_t>(validation.labels[i]);
        CHECK(scores[0] + scores[1] + scores[2] == doctest::Approx(1));
        CHECK(std::max_element(scores, scores + classes) - scores == measured.predictions[i]);
        CHECK(std::count_if(scores, scores + classes, [&](float one) { return one > scores[label]; }) ==
              measured.places[i]);
        loss -= std::log(static_cast<double>(scores[label]));
    }
    CHECK(measured.loss == doctest::Approx(loss / 20).epsilon(1e-6));
    CHECK(equal_but_for_seconds(run->snapshot(), before));

    const auto device = backend::make_cpu_device(1);
    const auto again = train::measure(*device, group, recipe, run->best_weights(), validation, /*batch=*/7);
    CHECK(again.loss == doctest::Approx(measured.loss).epsilon(1e-6));
    CHECK(again.predictions == measured.predictions);
}

TEST_CASE("training: an exploding loss makes the rank diverge immediately, and the group at the epoch's end") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    auto recipe = small_recipe(20);
    recipe.training.learning_rate = 1e30;
    Run run(group, datasets, recipe);

    CHECK(run->advance(1) == State::running);
    (void)run->advance(2);
    CHECK(run->state() == State::diverged);
    CHECK(run->progress() < 1);
    CHECK(run->advance(100) == State::diverged);

    CHECK(run->progress() == 1);
    CHECK(run->curve().empty());
    CHECK(run->best_epoch() == 0);
}

TEST_CASE("training: a snapshot that does not fit is rejected and changes nothing") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    const auto recipe = small_recipe(20);
    Run run(group, datasets, recipe);
    (void)run->advance(3);
    const NamedArrays before = run->snapshot();

    auto other = recipe;
    other.individual = 78;
    CHECK_THROWS_WITH_AS(run->restore(Run(group, datasets, other)->snapshot()), doctest::Contains("individual"),
                         FileError);
    other = recipe;
    std::get<nn::ConvLayer>(other.model[0]).channels = 5;
    CHECK_THROWS_WITH_AS(run->restore(Run(group, datasets, other)->snapshot()), doctest::Contains("weights/0.weight"),
                         FileError);
    other = recipe;
    other.training.optimizer = backend::Sgd{};
    CHECK_THROWS_WITH_AS(run->restore(Run(group, datasets, other)->snapshot()), doctest::Contains("optimizer/state_a"),
                         FileError);
    CHECK_THROWS_AS(run->restore({}), FileError);

    CHECK(equal_but_for_seconds(run->snapshot(), before));
}

TEST_CASE("training: an invalid recipe is rejected") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    CHECK_THROWS_WITH_AS(Run(group, datasets, small_recipe(0)), doctest::Contains("validation_samples"), ConfigError);
    auto recipe = small_recipe(20);
    recipe.data.mean = {0.1, 0.2};
    CHECK_THROWS_WITH_AS(Run(group, datasets, recipe), doctest::Contains("normalize.mean"), ConfigError);
    recipe = small_recipe(20);
    recipe.training.precision = train::Precision::tf32;
    CHECK_THROWS_WITH_AS(Run(group, datasets, recipe), doctest::Contains("training.precision: tf32 needs GPUs"),
                         ConfigError);
    recipe.training.precision = train::Precision::float16;
    CHECK_THROWS_WITH_AS(Run(group, datasets, recipe), doctest::Contains("training.precision: float16 needs GPUs"),
                         ConfigError);
    recipe.training.precision = train::Precision::bfloat16;
    if (!supports(train::Precision::bfloat16)) {
        CHECK_THROWS_WITH_AS(Run(group, datasets, recipe), doctest::Contains("needs AVX512-BF16 or AMX"), ConfigError);
    }
}

TEST_CASE("bfloat16: learns as well as float32; weights stay float32; repeated runs give the same bits" *
          doctest::skip(!supports(train::Precision::bfloat16))) {
    const comm::Group group = alone();
    const auto datasets = bright_rows(300);
    auto recipe = small_recipe(100);
    recipe.training.epochs = 6;
    Run exact(group, datasets, recipe);
    CHECK(exact.finish() == State::finished);
    recipe.training.precision = train::Precision::bfloat16;
    Run rounded(group, datasets, recipe);
    CHECK(rounded.finish() == State::finished);
    Run again(group, datasets, recipe);
    CHECK(again.finish() == State::finished);

    const Epoch& expected = exact->curve().back();
    const Epoch& found = rounded->curve().back();
    CHECK(expected.validation_accuracy > 0.9);
    CHECK(found.validation_accuracy == doctest::Approx(expected.validation_accuracy).epsilon(0.05));
    CHECK(found.training_loss != expected.training_loss);
    CHECK(equal_but_for_seconds(again->snapshot(), rounded->snapshot()));
    const std::vector<float> weights = tensors(rounded->snapshot(), "weights/");
    CHECK(std::any_of(weights.begin(), weights.end(),
                      [](float weight) { return (std::bit_cast<std::uint32_t>(weight) & 0xffffU) != 0; }));
}

TEST_CASE("measure: equal logits rank the classes in their order, so the prediction is the first class") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    const auto recipe = small_recipe(20);
    Run run(group, datasets, recipe);
    NamedArrays zeros = run->best_weights();
    for (NamedArray& array : zeros) {
        auto& values = std::get<std::vector<float>>(array.values);
        std::fill(values.begin(), values.end(), 0.0F);
    }
    const auto device = backend::make_cpu_device(1);

    const auto measured = train::measure(*device, group, recipe, zeros, datasets.training, 7);

    CHECK(measured.predictions == std::vector<std::int32_t>(60, 0));
    CHECK(datasets.training.labels == measured.places);
    CHECK(measured.scores == std::vector<float>(60 * classes, 1.0F / 3));
    CHECK(measured.loss == doctest::Approx(std::log(3.0)));
}

TEST_CASE("measure: a data set with another image shape is rejected") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    Run run(group, datasets, small_recipe(20));
    data::Dataset other = datasets.training;
    other.height = 3;
    other.width = 12;

    CHECK_THROWS_AS((void)run->measure(other), ConfigError);
}
