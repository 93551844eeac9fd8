// Tests of the macro F1 of each epoch, on 1 to 4 ranks.
#include "support/naive_f1.hpp"
#include "world.hpp"

#include <cmath>

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

/// Returns a recipe whose first epochs classify some samples wrongly.
train::Recipe slow_recipe(std::int64_t epochs) {
    train::Recipe recipe = small_recipe(37);
    recipe.training.learning_rate = 0.002;
    recipe.training.epochs = epochs;
    return recipe;
}

/// Removes from a snapshot what format 1 lacked.
NamedArrays as_format_1(NamedArrays snapshot) {
    std::erase_if(snapshot, [](const NamedArray& array) { return array.name == "class_counts"; });
    for (NamedArray& array : snapshot) {
        if (array.name == "curve") {
            const auto values = std::get<std::vector<double>>(array.values);
            const auto columns = static_cast<std::size_t>(array.shape[1]);
            std::vector<double> fewer;
            for (std::size_t i = 0; i < values.size(); ++i) {
                if (i % columns != columns - 1) {
                    fewer.push_back(values[i]);
                }
            }
            array.values = std::move(fewer);
            --array.shape[1];
        }
    }
    return snapshot;
}

}  // namespace

TEST_CASE("macro F1 of an epoch is that of the predictions for the validation set, on 1 to 4 ranks") {
    const auto datasets = bright_rows(100);
    for (int ranks = 1; ranks <= 4; ++ranks) {
        const comm::Group group = first_ranks(ranks);
        bool has_errors = false;
        for (const std::int64_t epochs : {1, 2, 4}) {
            CAPTURE(ranks);
            CAPTURE(epochs);
            const train::Recipe recipe = slow_recipe(epochs);
            Run run(group, datasets, recipe);
            CHECK(run.finish() == State::finished);
            const data::Dataset validation = validation_set(recipe, datasets);

            const train::Measured measured = run->measure(validation);

            const std::vector<std::int32_t> labels(validation.labels.begin(), validation.labels.end());
            const double f1 = run->curve().at(static_cast<std::size_t>(run->best_epoch() - 1)).validation_f1;
            CHECK(f1 == doctest::Approx(naive_f1(labels, measured.predictions, classes)).epsilon(1e-14));
            has_errors = has_errors || f1 < 0.9;
        }
        CHECK(has_errors);
    }
}

TEST_CASE("a snapshot of format 1 resumes: F1 is NaN for its epochs, and known for all later epochs") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(100);
    const train::Recipe recipe = slow_recipe(3);
    Run whole(group, datasets, recipe);
    (void)whole.finish();
    Run first(group, datasets, recipe);
    while (first->curve().empty()) {
        (void)first->advance(1);
    }
    const std::int64_t steps_of_epoch = first->steps_done();
    (void)first->advance(steps_of_epoch - 1);  // within the validation of the second epoch
    Run second(group, datasets, recipe);

    second->restore(as_format_1(first->snapshot()));
    CHECK(second.finish() == State::finished);

    REQUIRE(second->curve().size() == 3);
    CHECK(std::isnan(second->curve()[0].validation_f1));
    CHECK(std::isnan(second->curve()[1].validation_f1));
    CHECK(second->curve()[2].validation_f1 == whole->curve()[2].validation_f1);
    CHECK(second->curve()[2].validation_loss == whole->curve()[2].validation_loss);
}
