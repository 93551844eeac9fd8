// Tests that all ranks of a group stop together. Run with 2 ranks.
#include "failing_device.hpp"
#include "world.hpp"

#include <numeric>

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

constexpr std::int64_t training_count = 16;
constexpr std::int64_t validation_count = 8;

train::Recipe patient_recipe() {
    auto recipe = small_recipe(validation_count);
    recipe.training.epochs = 6;
    recipe.training.batch_size = validation_count;  // one batch of validation; rank 0 has its first half
    recipe.training.patience = 1;
    recipe.training.optimizer = backend::Sgd{};
    return recipe;
}

/// Returns data in which all training samples are of class 0. The first half of the validation samples is of class
/// `first`, the second half of class `second`.
data::Datasets labelled(const train::Recipe& recipe, std::int32_t first, std::int32_t second) {
    data::Datasets sets = bright_rows(training_count + validation_count);
    auto& labels = sets.training.labels.own();
    std::fill(labels.begin(), labels.end(), 0);
    const auto split = data::split(recipe.data, sets.training, recipe.seed);
    for (std::size_t i = 0; i < split.validation.size(); ++i) {
        labels[static_cast<std::size_t>(split.validation[i])] = i < split.validation.size() / 2 ? first : second;
    }
    return sets;
}

}  // namespace

TEST_CASE("all ranks stop together if only one rank's part of the validation improves") {
    const comm::Group both = first_ranks(2);
    const comm::Group one = alone();
    const auto recipe = patient_recipe();
    // By its own part alone, rank 0 would improve in every epoch and rank 1 never.
    const auto improving = labelled(recipe, 0, 0);
    const auto worsening = labelled(recipe, 1, 1);
    Run judge_of_first(one, improving, recipe);
    Run judge_of_second(one, worsening, recipe);
    (void)judge_of_first.finish();
    (void)judge_of_second.finish();
    CHECK(judge_of_first->curve().size() == 6);
    CHECK(judge_of_second->curve().size() == 2);

    const auto mixed = labelled(recipe, 0, 1);
    Run run(both, mixed, recipe);
    CHECK(run.finish() == State::finished);

    CHECK(run->curve().size() == 2);
    CHECK(run->best_epoch() == 1);
    CHECK(both.maximum(static_cast<std::int64_t>(run->curve().size())) == 2);
    const std::vector mine{run->curve()[1].validation_loss};
    CHECK(both.gather(mine)[0] == both.gather(mine)[1]);
}

TEST_CASE("a NaN loss on one rank makes this rank diverge immediately, and all ranks at the epoch's end") {
    const comm::Group both = first_ranks(2);
    const auto recipe = patient_recipe();
    const auto datasets = labelled(recipe, 0, 0);
    FailingDevice device(Failure::nan_loss, both.rank() == 1 ? 2 : -1);
    const auto all_reduce = comm::make_mpi_all_reduce(both, 30);
    train::Training training(device, both, *all_reduce, datasets, recipe);

    // Runs two training batches. The loss of the second is NaN, but its gradient is not.
    const State state = training.advance(2);
    CHECK(state == (both.rank() == 1 ? State::diverged : State::running));
    CHECK(training.progress() < 1);

    CHECK(training.advance(1) == State::diverged);
    CHECK(training.progress() == 1);
}

TEST_CASE("an exception in a step on one rank is thrown at the end of advance(); the other rank does not hang") {
    const comm::Group both = first_ranks(2);
    for (const bool residual :
         {false,
          true})  // true: the other rank expects sums of statistics that the failed rank does not start by itself
        for (const Failure failure : {Failure::exception, Failure::exception_before_forward}) {
            CAPTURE(residual);
            auto recipe = patient_recipe();
            recipe.model = residual ? residual_model() : recipe.model;
            const auto datasets = labelled(recipe, 0, 0);
            FailingDevice device(failure, both.rank() == 1 ? 1 : -1);
            const auto all_reduce = comm::make_mpi_all_reduce(both, 5);
            train::Training training(device, both, *all_reduce, datasets, recipe);

            // The first batch fails on rank 1. The call still runs to the end of the epoch.
            if (both.rank() == 1) {
                CHECK_THROWS_WITH((void)training.advance(3), "the device failed");
            } else {
                CHECK(training.advance(3) == State::diverged);
            }

            CHECK(training.state() == State::diverged);
            CHECK(training.curve().empty());
        }
}

TEST_CASE("the leader's pruner ends the training on every rank, after that epoch and with the best weights") {
    const comm::Group both = first_ranks(2);
    auto recipe = patient_recipe();
    recipe.training.patience = {};
    const auto datasets = labelled(recipe, 0, 0);
    Run whole(both, datasets, recipe);
    CHECK(whole.finish() == State::finished);

    Run run(both, datasets, recipe);
    std::vector<std::size_t> asked;
    if (both.is_leader()) {
        run->set_pruner([&asked](std::span<const Epoch> curve, std::int64_t epochs) {
            asked.push_back(curve.size());
            return epochs == 6 && curve.size() == 3;
        });
    }
    CHECK(run.finish() == State::pruned);

    CHECK(asked == (both.is_leader() ? std::vector<std::size_t>{1, 2, 3} : std::vector<std::size_t>{}));
    REQUIRE(run->curve().size() == 3);
    CHECK(run->advance(100) == State::pruned);
    CHECK(run->curve().back().validation_loss == whole->curve()[2].validation_loss);
    CHECK(run->best_epoch() == 3);
    CHECK(run->progress() == 1);
}

TEST_CASE("a training that ends by itself is complete, even if the pruner returns true in the last epoch") {
    const comm::Group both = first_ranks(2);
    auto recipe = patient_recipe();
    const auto worsening = labelled(recipe, 1, 1);
    Run run(both, worsening, recipe);
    run->set_pruner([](std::span<const Epoch> curve, std::int64_t) { return curve.size() == 2; });

    CHECK(run.finish() == State::finished);
    CHECK(run->curve().size() == 2);
}
