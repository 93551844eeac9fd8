// Tests that a training and a measurement are the same on 1 to 4 ranks. Run with 4 ranks.
#include "support/wrapped_device.hpp"
#include "world.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

/// A device that has no memory for a step context.
class FullDevice : public WrappedDevice {
public:
    [[nodiscard]] std::unique_ptr<backend::StepContext> make_step_context(const backend::Images&,
                                                                          std::int64_t) override {
        throw std::bad_alloc();
    }
};

}  // namespace

namespace {

void check_gradient_on_ranks(train::Precision precision) {
    const auto datasets = bright_rows(60);
    for (const std::int64_t batch : {8, 7, 3, 1}) {
        auto recipe = gradient_recipe(batch);
        recipe.training.precision = precision;
        const NamedArrays start = on_one_rank(datasets, recipe, 0);
        const NamedArrays expected = on_one_rank(datasets, recipe, 1);
        for (int ranks = 2; ranks <= 4; ++ranks) {
            CAPTURE(batch);
            CAPTURE(ranks);
            const comm::Group group = first_ranks(ranks);

            Run run(group, datasets, recipe);
            (void)run->advance(1);

            CHECK(run->global_batch() == batch);
            CHECK(move_difference(start, run->snapshot(), expected) < 1e-5);
        }
    }
}

}  // namespace

TEST_CASE("one step's gradient at the same global batch is the same on 1 to 4 ranks") {
    check_gradient_on_ranks(train::Precision::float32);
}

// Each rounded value belongs to a single sample or is the same on all ranks, so only the sums differ.
TEST_CASE("one step's gradient in bfloat16 is the same on 1 to 4 ranks, within the rounding of sums" *
          doctest::skip(!supports(train::Precision::bfloat16))) {
    check_gradient_on_ranks(train::Precision::bfloat16);
}

TEST_CASE("micro-batches: make the same step as the whole batch on 1 to 4 ranks, also if one of them is empty") {
    const auto datasets = bright_rows(60);
    for (const std::int64_t batch : {8, 7, 2}) {
        auto recipe = gradient_recipe(batch);
        recipe.model = {nn::ConvLayer{.channels = 4, .kernel = 3, .activation = backend::Activation::gelu},
                        nn::LayerNormLayer{},
                        nn::DropoutLayer{.rate = 0.25},
                        nn::PoolLayer{},
                        nn::FlattenLayer{},
                        nn::LinearLayer{}};
        recipe.data.augmentation = {.shift = 2, .mirror = true, .cutout = 3, .rotation = 25};
        const NamedArrays start = on_one_rank(datasets, recipe, 0);
        const NamedArrays expected = on_one_rank(datasets, recipe, 1);
        for (const std::int64_t parts : {1, 2, 3}) {
            for (int ranks = 1; ranks <= 4; ++ranks) {
                CAPTURE(batch);
                CAPTURE(parts);
                CAPTURE(ranks);
                recipe.training.micro_batches = parts;
                const comm::Group group = first_ranks(ranks);

                Run run(group, datasets, recipe);
                (void)run->advance(1);

                CHECK(move_difference(start, run->snapshot(), expected) < 1e-5);
            }
        }
    }
}

TEST_CASE("micro-batches: batch normalisation uses each micro-batch separately, over all ranks") {
    const auto datasets = bright_rows(60);
    for (const std::int64_t batch : {8, 7, 2}) {  // 2 samples in 3 micro-batches: one is empty
        auto recipe = gradient_recipe(batch);
        recipe.model = residual_model();
        recipe.training.micro_batches = 3;
        const NamedArrays expected = on_one_rank(datasets, recipe, 1);
        for (const NamedArray& array : expected) {
            if (const auto* values = std::get_if<std::vector<float>>(&array.values)) {
                CAPTURE(array.name);
                CHECK(std::all_of(values->begin(), values->end(), [](float value) { return std::isfinite(value); }));
            }
        }
        for (int ranks = 2; ranks <= 4; ++ranks) {
            CAPTURE(batch);
            CAPTURE(ranks);
            const comm::Group group = first_ranks(ranks);

            Run run(group, datasets, recipe);
            (void)run->advance(1);

            const NamedArrays found = run->snapshot();

            CHECK(difference(tensors(found, "weights/"), tensors(expected, "weights/")) < 1e-5);
            CHECK(find_array(found, "weights/1.num_batches_tracked").values ==
                  NamedArray{.name = {}, .shape = {}, .values = std::vector<std::int64_t>{3}}.values);
        }
    }
}

TEST_CASE("batch normalisation and dropout use the whole batch: one step is the same on 1 to 4 ranks") {
    const auto datasets = bright_rows(60);
    for (const std::int64_t batch : {8, 7, 3}) {  // 3 samples on 4 ranks: one rank has none
        auto recipe = gradient_recipe(batch);
        recipe.model = residual_model();
        recipe.data.augmentation = {.shift = 2, .mirror = true, .cutout = 3, .rotation = 25};
        const NamedArrays expected = on_one_rank(datasets, recipe, 1);
        const auto is_buffer = [](const NamedArray& array) { return array.name.find("running") != std::string::npos; };
        for (int ranks = 2; ranks <= 4; ++ranks) {
            CAPTURE(batch);
            CAPTURE(ranks);
            const comm::Group group = first_ranks(ranks);

            Run run(group, datasets, recipe);
            (void)run->advance(1);
            const NamedArrays found = run->snapshot();

            // The difference is over all tensors together, because the gradient of a bias before batch normalisation is
            // 0 apart from rounding.
            CHECK(difference(tensors(found, "weights/"), tensors(expected, "weights/")) < 1e-5);
            int buffers = 0;
            for (const NamedArray& array : expected) {
                if (array.name.starts_with("weights/") && is_buffer(array)) {
                    CAPTURE(array.name);
                    CHECK(difference(tensors(found, array.name), tensors(expected, array.name)) < 1e-6);
                    ++buffers;
                }
            }
            CHECK(buffers == 4);
            CHECK(find_array(found, "weights/1.num_batches_tracked").values ==
                  NamedArray{.name = {}, .shape = {}, .values = std::vector<std::int64_t>{1}}.values);
            // All ranks of the group must have the same bits.
            std::vector<double> mine;
            for (const float value : tensors(found, "weights/1.running_mean")) {
                mine.push_back(static_cast<double>(value));
            }
            const std::vector<double> all = group.gather(mine);
            for (std::size_t i = 0; i < all.size(); ++i) {
                CHECK(all[i] == mine[i % mine.size()]);
            }
        }
    }
}

TEST_CASE("a whole training with uneven batches is the same on 1 to 4 ranks") {
    // 43 training samples in batches of 7: the last batch has 1 sample, so most ranks have none. 17 samples are for
    // validation.
    const auto datasets = bright_rows(60);
    const comm::Group one = alone();
    for (const bool residual : {false, true}) {
        auto recipe = small_recipe(17);
        recipe.training.batch_size = 7;
        recipe.training.optimizer = backend::Adadelta{};
        recipe.training.learning_rate = 0.1;
        if (residual) {
            recipe.model = residual_model();
            recipe.data.augmentation = {.shift = 2, .mirror = true, .cutout = 3, .rotation = 25};
            recipe.training.optimizer = backend::Sgd{};
            recipe.training.learning_rate = 0.01;
            recipe.training.average = 0.8;
        }
        Run reference(one, datasets, recipe);
        (void)reference.finish();
        for (int ranks = 2; ranks <= 4; ++ranks) {
            CAPTURE(residual);
            CAPTURE(ranks);
            const comm::Group group = first_ranks(ranks);

            Run run(group, datasets, recipe);
            CHECK(run.finish() == State::finished);

            REQUIRE(run->curve().size() == 3);
            for (std::size_t epoch = 0; epoch < 3; ++epoch) {
                const auto& found = run->curve()[epoch];
                const auto& expected = reference->curve()[epoch];
                CHECK(found.training_loss == doctest::Approx(expected.training_loss).epsilon(1e-5));
                CHECK(found.validation_loss == doctest::Approx(expected.validation_loss).epsilon(1e-5));
                // The number of correct samples must be an integer. A sample that is counted twice would break this.
                CHECK(std::abs(found.validation_accuracy * 17 - std::round(found.validation_accuracy * 17)) < 1e-9);
                CHECK(std::abs(found.training_accuracy * 43 - std::round(found.training_accuracy * 43)) < 1e-9);
            }
            CHECK(run->samples_trained() == 3 * 43);
            if (residual) {
                CHECK(difference(tensors(run->snapshot(), "average_weights/"),
                                 tensors(reference->snapshot(), "average_weights/")) < 1e-5);
            }
        }
    }
}

TEST_CASE("measure: 10 007 samples give the same result on 1 to 4 ranks, and every sample counts once") {
    const auto datasets = bright_rows(60);
    const auto many = bright_rows(10007);
    auto recipe = small_recipe(20);
    recipe.training.epochs = 1;
    recipe.training.batch_size = 64;
    const comm::Group one = alone();
    Run reference(one, datasets, recipe);
    (void)reference.finish();
    const auto expected = reference->measure(many.training);
    const NamedArrays weights = reference->best_weights();
    REQUIRE(expected.samples == 10007);

    for (int ranks = 1; ranks <= 4; ++ranks) {
        CAPTURE(ranks);
        const comm::Group group = first_ranks(ranks);
        const auto device = backend::make_cpu_device(1);
        const auto found = train::measure(*device, group, recipe, weights, many.training, 64);

        CHECK(found.samples == 10007);
        CHECK(std::abs(found.loss - expected.loss) < 1e-6);
        CHECK(found.accuracy == expected.accuracy);
        CHECK(found.predictions == expected.predictions);
        CHECK(found.places == expected.places);
        CHECK(found.scores == expected.scores);
    }
}

TEST_CASE("measure: a list of samples gives the same results as the whole set, in the list's order, on 1 to 4 ranks") {
    const auto datasets = bright_rows(203);
    const auto recipe = small_recipe(20);
    const comm::Group one = alone();
    Run run(one, datasets, recipe);
    const NamedArrays weights = run->best_weights();
    const auto device = backend::make_cpu_device(1);
    const auto all = train::measure(*device, one, recipe, weights, datasets.training, 64);
    std::vector<std::int64_t> named;
    for (std::int64_t sample = 201; sample > 0; sample -= 3) {
        named.push_back(sample);
    }

    for (int ranks = 1; ranks <= 4; ++ranks) {
        CAPTURE(ranks);
        const comm::Group group = first_ranks(ranks);
        const auto found = train::measure(*device, group, recipe, weights, datasets.training, 9, named);

        REQUIRE(found.samples == std::ssize(named));
        double loss = 0;
        std::int64_t wrong = 0;
        for (std::size_t i = 0; i < named.size(); ++i) {
            const auto sample = static_cast<std::size_t>(named[i]);
            const auto label = static_cast<std::size_t>(datasets.training.labels[sample]);
            wrong += found.predictions[i] == all.predictions[sample] ? 0 : 1;
            wrong += found.places[i] == all.places[sample] ? 0 : 1;
            for (std::size_t c = 0; c < classes; ++c) {
                wrong += std::abs(found.scores[i * classes + c] - all.scores[sample * classes + c]) < 1e-5F ? 0 : 1;
            }
            loss -= std::log(static_cast<double>(found.scores[i * classes + label]));
        }
        CHECK(wrong == 0);
        CHECK(found.loss == doctest::Approx(loss / static_cast<double>(named.size())).epsilon(1e-5));
    }
}

TEST_CASE("measure: if one rank has no memory, all ranks throw std::bad_alloc") {
    const auto datasets = bright_rows(60);
    const auto recipe = small_recipe(20);
    const comm::Group one = alone();
    const NamedArrays weights = Run(one, datasets, recipe)->best_weights();
    const comm::Group group = first_ranks(4);
    std::unique_ptr<backend::Device> device = backend::make_cpu_device(1);
    if (group.rank() == 2) {
        device = std::make_unique<FullDevice>();
    }

    CHECK_THROWS_AS((void)train::measure(*device, group, recipe, weights, datasets.training, 8), std::bad_alloc);
}

TEST_CASE("validation in a training counts each of 1 007 samples once, on 1 to 4 ranks") {
    const auto datasets = bright_rows(1015);
    auto recipe = small_recipe(1007);
    recipe.training.epochs = 1;
    recipe.training.batch_size = 8;
    double expected = 0;
    for (int ranks = 1; ranks <= 4; ++ranks) {
        CAPTURE(ranks);
        const comm::Group group = first_ranks(ranks);
        Run run(group, datasets, recipe);
        // One training step, then all validation batches except the last.
        const std::int64_t per_batch = (8 + group.size() - 1) / group.size() * group.size();
        (void)run->advance(1 + (1007 - 1) / per_batch);
        const NamedArrays before_end = run->snapshot();
        const auto& rows = std::get<std::vector<double>>(find_array(before_end, "partial_sums").values);
        double counted = 0;
        for (std::size_t rank = 0; rank < rows.size() / 7; ++rank) {
            counted += rows[rank * 7 + 5];
        }
        CHECK(counted == static_cast<double>((1007 - 1) / per_batch * per_batch));

        CHECK(run->advance(1) == State::finished);

        const double accuracy = run->curve()[0].validation_accuracy * 1007;
        CHECK(std::abs(accuracy - std::round(accuracy)) < 1e-9);
        if (ranks == 1) {
            expected = run->curve()[0].validation_loss;
        }
        CHECK(std::abs(run->curve()[0].validation_loss - expected) < 1e-6);
    }
}

TEST_CASE("batch_size_per_rank sets the global batch, and the learning rate is scaled by the number of ranks") {
    const auto datasets = bright_rows(60);
    auto recipe = small_recipe(20);
    recipe.training.batch_size_per_rank = 3;
    recipe.training.epochs = 1;
    for (const auto& [scale, factor] :
         {std::pair{train::ScaleLearningRate::none, 1.0}, std::pair{train::ScaleLearningRate::sqrt, 2.0},
          std::pair{train::ScaleLearningRate::linear, 4.0}}) {
        recipe.training.scale_learning_rate = scale;
        const comm::Group group = first_ranks(4);
        Run run(group, datasets, recipe);

        (void)run.finish();

        CHECK(run->global_batch() == 12);
        CHECK(run->plan().batch == 3);
        CHECK(run->curve()[0].learning_rate == doctest::Approx(0.05 * factor));
    }
}
