// Tests of snapshots of a training on 2 ranks. Run with 4 ranks: two groups of 2 do the same, so every rank has the
// same snapshot.
#include "world.hpp"

#include <utility>

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

comm::Group pairs() {
    const int rank = comm::rank_of(MPI_COMM_WORLD);
    return {MPI_COMM_WORLD, rank / 2, rank % 2};
}

/// Returns a recipe with 18 steps per epoch: 8 to train on 43 samples in batches of 6, and 10 to validate on 57
/// samples.
train::Recipe uneven_recipe() {
    auto recipe = small_recipe(57);
    recipe.training.batch_size_per_rank = 3;
    recipe.training.scale_learning_rate = train::ScaleLearningRate::linear;
    recipe.training.learning_rate = 0.01;
    recipe.training.optimizer = backend::AdamW{};
    recipe.training.patience = 5;
    return recipe;
}

constexpr std::int64_t in_training = 18 + 3;        ///< in the second epoch's training
constexpr std::int64_t in_validation = 18 + 8 + 4;  ///< in the second epoch's validation

}  // namespace

TEST_CASE("a training on 2 ranks that is resumed in the middle of an epoch ends with the same bits") {
    const comm::Group group = pairs();
    const auto datasets = bright_rows(100);
    using train::Precision;
    const Precision rounded = supports(Precision::bfloat16) ? Precision::bfloat16 : Precision::float32;
    for (const auto& [residual, precision] :
         {std::pair{false, Precision::float32}, {true, Precision::float32}, {true, rounded}}) {
        CAPTURE(static_cast<int>(precision));
        auto recipe = uneven_recipe();
        recipe.model = residual ? residual_model() : recipe.model;
        recipe.training.precision = precision;
        recipe.training.micro_batches = residual ? 2 : 1;
        recipe.training.average = residual ? std::optional(0.9) : std::nullopt;
        recipe.data.augmentation = {
            .shift = residual ? 2 : 0, .mirror = residual, .cutout = residual ? 3 : 0, .rotation = residual ? 25.0 : 0};
        Run whole(group, datasets, recipe);
        (void)whole.finish();
        const NamedArrays expected = whole->snapshot();
        for (const std::int64_t steps : {in_training, in_validation, std::int64_t{18}}) {
            CAPTURE(residual);
            CAPTURE(steps);
            Run first(group, datasets, recipe);
            (void)first->advance(steps);
            const NamedArrays snapshot = first->snapshot();
            Run second(group, datasets, recipe);
            second->restore(snapshot);
            CHECK(equal_but_for_seconds(second->snapshot(), snapshot));

            CHECK(second.finish() == State::finished);

            CHECK(equal_but_for_seconds(second->snapshot(), expected));
            CHECK(second->samples_trained() == 3 * 43);
            for (const Epoch& epoch : second->curve()) {
                CHECK(epoch.ranks == 2);
            }
        }
    }
}

TEST_CASE("a snapshot of 2 ranks resumes on 1, 3 and 4 ranks with the same global batch, rate and counts") {
    const comm::Group two = pairs();
    const auto datasets = bright_rows(100);
    auto recipe = uneven_recipe();
    recipe.training.average = 0.8;
    Run whole(two, datasets, recipe);
    (void)whole.finish();
    for (const std::int64_t steps : {in_training, in_validation}) {
        Run first(two, datasets, recipe);
        (void)first->advance(steps);
        NamedArrays snapshot = first->snapshot();
        for (NamedArray& array : snapshot) {
            if (array.name == "partial_sums") {
                std::get<std::vector<double>>(array.values)[7 + 6] = 5000;  // seconds of rank 1; they must be ignored
            }
        }
        for (const int ranks : {1, 3, 4}) {
            CAPTURE(steps);
            CAPTURE(ranks);
            const comm::Group group = first_ranks(ranks);
            Run second(group, datasets, recipe);
            second->restore(snapshot);
            CHECK(second->progress() == first->progress());

            CHECK(second.finish() == State::finished);

            CHECK(second->global_batch() == 6);
            CHECK(second->plan().batch == (6 + group.size() - 1) / group.size());
            REQUIRE(second->curve().size() == 3);
            for (std::size_t epoch = 0; epoch < 3; ++epoch) {
                const auto& found = second->curve()[epoch];
                const auto& reference = whole->curve()[epoch];
                CHECK(found.training_loss == doctest::Approx(reference.training_loss).epsilon(1e-4));
                CHECK(found.validation_loss == doctest::Approx(reference.validation_loss).epsilon(1e-4));
                CHECK(std::abs(found.validation_accuracy - reference.validation_accuracy) < 1.5 / 57);
                // NaN if a sample is missing or counts twice
                CHECK(std::abs(found.validation_f1 - reference.validation_f1) < 0.05);
                CHECK(found.learning_rate == doctest::Approx(0.02));
                CHECK(found.seconds < 1000);
                CHECK(reference.ranks == 2);
            }
            CHECK(difference(tensors(second->snapshot(), "average_weights/"),
                             tensors(whole->snapshot(), "average_weights/")) < 1e-4);
            CHECK(second->curve()[0].ranks == 2);
            CHECK(second->curve()[1].ranks == 0);
            CHECK(second->curve()[2].ranks == group.size());
        }
    }
}

TEST_CASE("an epoch trained by different numbers of ranks has ranks = 0, also after a second snapshot") {
    const comm::Group two = pairs();
    const comm::Group one = alone();
    const auto datasets = bright_rows(100);
    Run first(two, datasets, uneven_recipe());
    (void)first->advance(in_training);
    Run second(one, datasets, uneven_recipe());
    second->restore(first->snapshot());
    (void)second->advance(1);
    Run third(one, datasets, uneven_recipe());
    third->restore(second->snapshot());
    (void)third.finish();

    Run fourth(two, datasets, uneven_recipe());
    fourth->restore(third->snapshot());

    REQUIRE(fourth->curve().size() == 3);
    CHECK(fourth->curve()[0].ranks == 2);
    CHECK(fourth->curve()[1].ranks == 0);
    CHECK(fourth->curve()[2].ranks == 1);
}

TEST_CASE("training_seconds: sums the time of all starts of a training") {
    const comm::Group group = pairs();
    const auto datasets = bright_rows(100);
    Run first(group, datasets, uneven_recipe());
    (void)first->advance(in_validation);
    const double before = first->training_seconds();
    Run second(group, datasets, uneven_recipe());
    second->restore(first->snapshot());

    (void)second.finish();

    if (!group.is_leader()) {
        return;  // the epochs' seconds are measured on the leader
    }
    CHECK(before > 0);
    CHECK(second->training_seconds() == doctest::Approx(before + second->step_seconds()));
    double of_epochs = 0;
    for (const Epoch& epoch : second->curve()) {
        of_epochs += epoch.seconds;
    }
    CHECK(second->training_seconds() == doctest::Approx(of_epochs));
}

TEST_CASE("the snapshot is the same on every rank, and a resumed epoch adds to its stored seconds") {
    const comm::Group group = pairs();
    const auto datasets = bright_rows(100);
    Run first(group, datasets, uneven_recipe());
    (void)first->advance(in_validation);
    const NamedArrays snapshot = first->snapshot();
    const auto rows = std::get<std::vector<double>>(find_array(snapshot, "partial_sums").values);
    REQUIRE(rows.size() == 2 * 7);

    Run second(group, datasets, uneven_recipe());
    NamedArrays later = snapshot;
    for (NamedArray& array : later) {
        if (array.name == "partial_sums") {
            std::get<std::vector<double>>(array.values)[6] = 1000;  // of the leader
        }
    }
    second->restore(later);
    (void)second->advance(100);

    CHECK(group.gather(rows).size() == 4 * 7);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        CHECK(group.gather(rows)[i] == group.gather(rows)[rows.size() + i]);
    }
    CHECK(second->curve()[1].seconds > 1000);
    CHECK(second->curve()[1].seconds < 1100);
    CHECK(second->curve()[2].seconds < 100);
}
