// Tests of trainings whose batches are computed as blocks of samples. Run with 2 ranks.
#include "in_file.hpp"
#include "support/wrapped_device.hpp"
#include "world.hpp"

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

/// A CPU device with blocks of a few samples of the tests' small images.
class BlockDevice : public WrappedDevice {
public:
    [[nodiscard]] backend::Blocks blocks() const override { return {.bytes = 6000}; }
};

/// Returns a recipe with all features that depend on the index of a sample in its batch. On 1 and 2 ranks, the blocks
/// do not divide the batches.
train::Recipe block_recipe() {
    auto recipe = small_recipe(41);
    recipe.training.batch_size = 68;
    recipe.training.micro_batches = 2;
    recipe.training.balanced_classes = true;
    recipe.data.augmentation = {.shift = 2, .mirror = true, .cutout = 2, .rotation = 25};
    recipe.model = {nn::ConvLayer{.channels = 4, .kernel = 3, .activation = backend::Activation::gelu},
                    nn::LayerNormLayer{},
                    nn::DropoutLayer{.rate = 0.25},
                    nn::PoolLayer{},
                    nn::GlobalAveragePoolLayer{},
                    nn::LinearLayer{}};
    return recipe;
}

Run in_blocks(const comm::Group& group, const data::Datasets& datasets, const train::Recipe& recipe) {
    return {group, datasets, recipe, std::make_unique<BlockDevice>()};
}

}  // namespace

TEST_CASE("blocks: a training follows that with whole batches, on 1 and 2 ranks") {
    const auto datasets = bright_rows(190);
    const auto recipe = block_recipe();
    for (const int ranks : {1, 2}) {
        CAPTURE(ranks);
        const comm::Group group = ranks == 1 ? alone() : first_ranks(2);
        Run whole(group, datasets, recipe);
        Run blocks = in_blocks(group, datasets, recipe);
        REQUIRE(blocks->plan().blocks() > 2);
        REQUIRE(blocks->plan().blocks() * blocks->plan().block > blocks->plan().batch);

        CHECK(whole.finish() == State::finished);
        CHECK(blocks.finish() == State::finished);

        CHECK(blocks->samples_trained() == whole->samples_trained());
        for (std::size_t i = 0; i < whole->curve().size(); ++i) {
            const Epoch& epoch = blocks->curve()[i];
            const Epoch& expected = whole->curve()[i];
            CHECK(epoch.training_loss == doctest::Approx(expected.training_loss).epsilon(1e-5));
            CHECK(epoch.validation_loss == doctest::Approx(expected.validation_loss).epsilon(1e-5));
            CHECK(epoch.validation_accuracy == expected.validation_accuracy);
        }
        const auto arena = arena_of(blocks->plan(), blocks->snapshot());
        CHECK(difference(arena, arena_of(whole->plan(), whole->snapshot())) < 1e-4);
        const train::Measured measured = blocks->measure(datasets.training);
        const train::Measured expected = whole->measure(datasets.training);
        CHECK(measured.loss == doctest::Approx(expected.loss).epsilon(1e-5));
        CHECK(measured.predictions == expected.predictions);
        CHECK(difference(measured.scores, expected.scores) < 1e-4);
    }
}

TEST_CASE("blocks: two threads give the same bits each time, and follow the training with one thread") {
    const auto datasets = bright_rows(190);
    const auto recipe = block_recipe();
    const comm::Group group = first_ranks(2);
    Run one(group, datasets, recipe);
    CHECK(one.finish() == State::finished);
    Run first(group, datasets, recipe, backend::make_cpu_device(2));
    REQUIRE(first->plan().replicas == 2);
    CHECK(first.finish() == State::finished);
    Run second(group, datasets, recipe, backend::make_cpu_device(2));
    CHECK(second.finish() == State::finished);

    CHECK(equal_but_for_seconds(second->snapshot(), first->snapshot()));
    CHECK(difference(arena_of(first->plan(), first->snapshot()), arena_of(one->plan(), one->snapshot())) < 1e-4);
    CHECK(first->measure(datasets.training).predictions == one->measure(datasets.training).predictions);
}

TEST_CASE("blocks: a resumed training, and one on streamed images, end with the same bits") {
    const auto datasets = bright_rows(190);
    const auto recipe = block_recipe();
    const comm::Group group = first_ranks(2);
    Run whole = in_blocks(group, datasets, recipe);
    CHECK(whole.finish() == State::finished);
    const NamedArrays expected = whole->snapshot();
    for (const std::int64_t steps : {1, 3, 5}) {
        CAPTURE(steps);
        Run first = in_blocks(group, datasets, recipe);
        (void)first->advance(steps);
        Run second = in_blocks(group, datasets, recipe);
        second->restore(first->snapshot());

        CHECK(second.finish() == State::finished);

        CHECK(equal_but_for_seconds(second->snapshot(), expected));
    }
    const InFile file(datasets);
    Run streamed = in_blocks(group, file.sets(), recipe);
    CHECK(streamed.finish() == State::finished);
    CHECK(equal_but_for_seconds(streamed->snapshot(), expected));
}
