// Tests of the objective that selects the best epoch.
#include "finch/base/error.hpp"

#include "world.hpp"

#include <algorithm>

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

/// Returns a recipe with enough epochs: the error is smallest long before the loss is.
train::Recipe error_recipe(std::int64_t epochs) {
    auto recipe = small_recipe(40);
    recipe.objective = train::Objective::validation_error;
    recipe.training.epochs = epochs;
    return recipe;
}

std::int64_t epoch_of_smallest_error(const std::vector<Epoch>& curve) {
    return std::max_element(
               curve.begin(), curve.end(),
               [](const Epoch& a, const Epoch& b) { return a.validation_accuracy < b.validation_accuracy; })
        ->epoch;
}

std::int64_t epoch_of_smallest_loss(const std::vector<Epoch>& curve) {
    return std::min_element(curve.begin(), curve.end(),
                            [](const Epoch& a, const Epoch& b) { return a.validation_loss < b.validation_loss; })
        ->epoch;
}

}  // namespace

TEST_CASE("validation_error: the best epoch is the first with the smallest error; its weights are kept") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(120);
    Run run(group, datasets, error_recipe(12));
    (void)run.finish();
    const std::int64_t expected = epoch_of_smallest_error(run->curve());
    REQUIRE(expected < epoch_of_smallest_loss(run->curve()));
    Run until_then(group, datasets, error_recipe(expected));
    (void)until_then.finish();

    CHECK(run->best_epoch() == expected);
    CHECK(tensors(run->best_weights(), "") == tensors(until_then->snapshot(), "weights/"));
}

TEST_CASE("validation_error: patience counts the epochs without a smaller error") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(120);
    auto recipe = error_recipe(30);
    recipe.training.patience = 4;
    Run run(group, datasets, recipe);

    (void)run.finish();

    const auto& curve = run->curve();
    CHECK(run->best_epoch() + 4 == static_cast<std::int64_t>(curve.size()));
    CHECK(curve.back().validation_loss < curve[static_cast<std::size_t>(run->best_epoch()) - 1].validation_loss);
}

TEST_CASE("a snapshot with the weights of an epoch that the objective does not select is rejected") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(120);
    auto recipe = error_recipe(12);
    recipe.objective = train::Objective::validation_loss;
    Run by_loss(group, datasets, recipe);
    (void)by_loss.finish();
    Run by_error(group, datasets, error_recipe(12));

    CHECK_THROWS_AS(by_error->restore(by_loss->snapshot()), FileError);
}
