// Tests of class weights and regression losses on 1 to 4 ranks. Run with 4 ranks.
#include "world.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

/// Returns float images. The two targets of an image are its mean times 10 and times −1.
data::Datasets brightness(std::int64_t samples) {
    data::Dataset set{.height = image_size, .width = image_size, .channels = 1, .target_size = 2, .float_pixels = true};
    RandomStream random(12, Purpose::test);
    std::vector<float> pixels;
    for (std::int64_t sample = 0; sample < samples; ++sample) {
        const double level = random.uniform() * 4 - 2;
        double sum = 0;
        for (std::int64_t pixel = 0; pixel < image_size * image_size; ++pixel) {
            pixels.push_back(static_cast<float>(level + random.uniform() - 0.5));
            sum += static_cast<double>(pixels.back());
        }
        const double mean = sum / static_cast<double>(image_size * image_size);
        set.targets.own().push_back(static_cast<float>(10 * mean));
        set.targets.own().push_back(static_cast<float>(-mean));
    }
    set.pixels.own().resize(pixels.size() * sizeof(float));
    std::memcpy(set.pixels.own().data(), pixels.data(), set.pixels.size());
    data::Datasets sets;
    sets.training = std::move(set);
    return sets;
}

train::Recipe regression_recipe(train::Loss loss) {
    train::Recipe recipe = small_recipe(40);
    recipe.training.loss = loss;
    recipe.data.mean = {0};
    recipe.data.deviation = {1};
    recipe.training.optimizer = backend::Adam{};
    recipe.training.learning_rate = 0.02;
    recipe.training.epochs = 30;
    return recipe;
}

/// Checks that one step on 2 to 4 ranks gives the same weights as on one rank.
void check_step_on_ranks(const data::Datasets& datasets, const train::Recipe& recipe) {
    const NamedArrays start = on_one_rank(datasets, recipe, 0);
    const NamedArrays expected = on_one_rank(datasets, recipe, 1);
    for (int ranks = 2; ranks <= 4; ++ranks) {
        CAPTURE(ranks);
        const comm::Group group = first_ranks(ranks);
        Run run(group, datasets, recipe);
        (void)run->advance(1);
        CHECK(move_difference(start, expected, run->snapshot()) < 1e-5);
    }
}

/// Returns the weighted mean loss of `samples`, computed from the scores in `measured`. The weights are by label.
double weighted_loss(const train::Measured& measured, const data::Dataset& set, std::span<const std::int64_t> samples,
                     const std::vector<double>& weights) {
    double loss = 0;
    double all = 0;
    for (const std::int64_t sample : samples) {
        const auto row = static_cast<std::size_t>(sample);
        const auto label = static_cast<std::size_t>(set.labels[row]);
        loss -= weights[label] * std::log(static_cast<double>(measured.scores[row * classes + label]));
        all += weights[label];
    }
    return loss / all;
}

}  // namespace

TEST_CASE("class weights: one step is the same on 1 to 4 ranks, with micro-batches and small batches too") {
    const auto datasets = bright_rows(60);
    for (const std::int64_t batch : {8, 7, 2}) {
        CAPTURE(batch);
        auto recipe = gradient_recipe(batch);
        recipe.training.class_weights = {0.5, 4, 1};
        check_step_on_ranks(datasets, recipe);
        recipe.training.micro_batches = 3;
        check_step_on_ranks(datasets, recipe);
    }
}

TEST_CASE("class weights: only their ratios matter; equal weights have no effect") {
    const auto datasets = bright_rows(60);
    auto recipe = gradient_recipe(8);
    const NamedArrays start = on_one_rank(datasets, recipe, 0);
    const auto after = [&](const std::vector<double>& weights) {
        recipe.training.class_weights = weights;
        return on_one_rank(datasets, recipe, 1);
    };
    CHECK(move_difference(start, after({}), after({2, 2, 2})) < 1e-5);
    CHECK(move_difference(start, after({1, 8, 2}), after({0.25, 2, 0.5})) < 1e-5);
    CHECK(move_difference(start, after({}), after({1, 8, 2})) > 0.1);
}

TEST_CASE("class weights: the validation loss is the weighted mean; balanced weights count only training samples") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    const data::Dataset& set = datasets.training;
    auto recipe = small_recipe(20);
    recipe.training.epochs = 1;
    const data::Split split = data::split(recipe.data, set, recipe.seed);
    const auto check = [&](const std::vector<double>& weights) {
        Run run(group, datasets, recipe);
        CHECK(run.finish() == State::finished);
        const double found = run->curve().front().validation_loss;
        CHECK(found == doctest::Approx(weighted_loss(run->measure(set), set, split.validation, weights)).epsilon(1e-5));
        CHECK(found !=
              doctest::Approx(weighted_loss(run->measure(set), set, split.validation, {1, 1, 1})).epsilon(1e-5));
    };

    recipe.training.class_weights = {3, 1, 0.25};
    check({3, 1, 0.25});

    recipe.training.class_weights = {};
    recipe.training.balanced_classes = true;
    std::vector<double> weights(classes);
    for (const std::int64_t sample : split.training) {
        weights[static_cast<std::size_t>(set.labels[static_cast<std::size_t>(sample)])] += 1;
    }
    for (double& weight : weights) {
        weight = 40 / (3 * weight);
    }
    check(weights);
}

TEST_CASE("class weights: a wrong number of weights, and a class without a training sample, are rejected") {
    const comm::Group group = alone();
    const auto refused = [&](const data::Datasets& datasets, const train::Recipe& recipe, const char* why) {
        CHECK_THROWS_WITH_AS(Run(group, datasets, recipe), doctest::Contains(why), ConfigError);
    };
    auto recipe = small_recipe(20);
    recipe.training.class_weights = {1, 2};
    refused(bright_rows(60), recipe, "training.class_weights: has 2 weights for 3 classes");
    recipe.training.class_weights = {};
    recipe.training.balanced_classes = true;
    data::Datasets datasets = bright_rows(60);
    for (std::int32_t& label : datasets.training.labels.own()) {
        label = std::max(label, 1);
    }
    refused(datasets, recipe, "training.balanced_classes: no sample that trains has the label 0");
}

TEST_CASE("regression: learns a linear function, and the accuracy is NaN") {
    const comm::Group group = alone();
    const auto datasets = brightness(240);
    for (const train::Loss loss : {train::Loss::mean_squared_error, train::Loss::mean_absolute_error}) {
        CAPTURE(word(loss));
        Run run(group, datasets, regression_recipe(loss));
        CHECK(run.finish() == State::finished);
        const Epoch& first = run->curve().front();
        const Epoch& best = run->curve()[static_cast<std::size_t>(run->best_epoch() - 1)];
        CHECK(best.validation_loss < 0.25 * first.validation_loss);
        CHECK(std::isnan(best.training_accuracy));
        CHECK(std::isnan(best.validation_accuracy));

        const train::Measured measured = run->measure(datasets.training);
        CHECK(std::isnan(measured.accuracy));
        CHECK(measured.predictions.empty());
        REQUIRE(measured.scores.size() == datasets.training.targets.size());
        double sum = 0;
        for (std::size_t i = 0; i < measured.scores.size(); ++i) {
            const double error =
                static_cast<double>(measured.scores[i]) - static_cast<double>(datasets.training.targets[i]);
            sum += loss == train::Loss::mean_squared_error ? error * error : std::abs(error);
        }
        CHECK(measured.loss == doctest::Approx(sum / static_cast<double>(measured.scores.size())).epsilon(1e-5));
    }
}

TEST_CASE("regression: one step is the same on 1 to 4 ranks, and a resumed training gives the same bits") {
    const auto datasets = brightness(60);
    auto recipe = regression_recipe(train::Loss::mean_squared_error);
    recipe.training.optimizer = backend::Sgd{};
    recipe.training.learning_rate = 1;
    for (const std::int64_t batch : {8, 3}) {
        recipe.training.batch_size = batch;
        check_step_on_ranks(datasets, recipe);
    }

    recipe = regression_recipe(train::Loss::mean_absolute_error);
    recipe.data.validation_samples = 20;
    recipe.training.epochs = 2;
    const comm::Group group = first_ranks(4);
    Run whole(group, datasets, recipe);
    (void)whole.finish();
    Run stopped(group, datasets, recipe);
    (void)stopped->advance(7);  // in the second epoch
    Run resumed(group, datasets, recipe);
    resumed->restore(stopped->snapshot());
    (void)resumed.finish();
    CHECK(tensors(whole->best_weights(), "") == tensors(resumed->best_weights(), ""));
    CHECK(whole->curve().back().validation_loss == resumed->curve().back().validation_loss);
}
