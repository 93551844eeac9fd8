// Tests that the settings of a recipe take effect in the training.
#include "finch/nn/initialization.hpp"

#include "support/wrapped_device.hpp"
#include "world.hpp"

#include <cmath>
#include <new>

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

/// Returns a recipe with a learning rate so small that the weights stay constant: every epoch measures the same
/// weights.
train::Recipe resting_recipe() {
    train::Recipe recipe = small_recipe(40);
    recipe.training.optimizer = backend::Sgd{};
    recipe.training.learning_rate = 1e-30;
    return recipe;
}

std::vector<Epoch> curve_of(const comm::Group& group, const data::Datasets& datasets, const train::Recipe& recipe) {
    Run run(group, datasets, recipe);
    CHECK(run.finish() == State::finished);
    return run->curve();
}

/// A CPU device with a limited amount of memory.
class SmallDevice : public WrappedDevice {
public:
    explicit SmallDevice(std::int64_t bytes) : bytes_(bytes) {}
    [[nodiscard]] std::int64_t free_bytes() const override { return bytes_; }

private:
    std::int64_t bytes_;
};

}  // namespace

TEST_CASE("training: the rate follows warm-up and schedule in every step; the curve has the epoch's last rate") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(120);
    auto recipe = small_recipe(40);  // 80 samples in batches of 8: 10 steps per epoch
    recipe.training.learning_rate = 0.5;
    recipe.training.warm_up_epochs = 1.5;
    Run by_epoch(group, datasets, recipe);
    CHECK(by_epoch.finish() == State::finished);
    CHECK(by_epoch->curve()[0].learning_rate == doctest::Approx(0.5 * 10 / 15));
    CHECK(by_epoch->curve()[1].learning_rate == 0.5);

    recipe.training.schedule = nn::CosineSchedule{};
    recipe.training.pace = nn::Pace::step;
    recipe.training.warm_up_epochs = 0;
    Run by_step(group, datasets, recipe);
    CHECK(by_step.finish() == State::finished);
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
        const double share = (static_cast<double>(epoch) * 10 + 9) / 30;
        CHECK(by_step->curve()[epoch].learning_rate == doctest::Approx(0.5 * (1 + std::cos(M_PI * share)) / 2));
    }
}

TEST_CASE("training: with clip_norm a step moves the weights by at most the learning rate times the norm") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(31);
    auto recipe = small_recipe(10);
    recipe.training.optimizer = backend::Sgd{};
    recipe.training.learning_rate = 1;
    recipe.training.clip_norm = 1e-3;
    Run run(group, datasets, recipe);
    auto before = arena_of(run->plan(), run->snapshot());
    for (int step = 0; step < 3; ++step) {
        (void)run->advance(1);
        const auto after = arena_of(run->plan(), run->snapshot());
        double square = 0;
        for (std::size_t i = 0; i < after.size(); ++i) {
            square += std::pow(static_cast<double>(after[i]) - static_cast<double>(before[i]), 2);
        }
        CHECK(std::sqrt(square) == doctest::Approx(1e-3).epsilon(0.01));
        before = after;
    }
}

TEST_CASE("training: without decay_all only tensors with more than one dimension decay") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(31);
    auto recipe = small_recipe(10);
    recipe.training.learning_rate = 0.1;
    const auto after_a_step = [&](double decay, bool all) {
        recipe.training.optimizer = backend::Sgd{.weight_decay = decay};
        recipe.training.decay_all = all;
        Run run(group, datasets, recipe);
        (void)run->advance(1);
        return weights_of(run->snapshot());
    };
    const auto plain = after_a_step(0, true);
    const auto weights_only = after_a_step(0.5, false);
    const auto everything = after_a_step(0.5, true);
    for (std::size_t i = 0; i < plain.size(); ++i) {
        CAPTURE(plain[i].name);
        const bool is_bias = plain[i].shape.size() == 1;
        CHECK((weights_only[i].values == plain[i].values) == is_bias);
        CHECK(everything[i].values != plain[i].values);
        CHECK((weights_only[i].values == everything[i].values) == !is_bias);
    }
}

TEST_CASE("training: label smoothing changes the training loss proportionally, but not the validation loss") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(120);
    auto recipe = resting_recipe();
    std::vector<Epoch> epochs;
    for (const double smoothing : {0.0, 0.1, 0.2}) {
        recipe.training.label_smoothing = smoothing;
        epochs.push_back(curve_of(group, datasets, recipe)[0]);
    }
    const double once = epochs[1].training_loss - epochs[0].training_loss;
    CHECK(std::abs(once) > 1e-4);
    CHECK(epochs[2].training_loss - epochs[0].training_loss == doctest::Approx(2 * once).epsilon(1e-5));
    CHECK(epochs[1].validation_loss == epochs[0].validation_loss);
    CHECK(epochs[2].validation_loss == epochs[0].validation_loss);
}

TEST_CASE("training: starts with the configured initialization") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(31);
    auto recipe = small_recipe(10);
    for (const auto kind : {nn::Initialization::pytorch, nn::Initialization::he, nn::Initialization::xavier}) {
        recipe.training.initialization = kind;
        Run run(group, datasets, recipe);
        CHECK(arena_of(run->plan(), run->snapshot()) ==
              nn::initial_state(run->plan(), recipe.seed, recipe.individual, kind).parameters);
    }
}

TEST_CASE("training: augmentation differs in each epoch, and does not change the validation") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(120);
    auto recipe = resting_recipe();
    const auto plain = curve_of(group, datasets, recipe);
    CHECK(plain[1].training_loss == doctest::Approx(plain[0].training_loss).epsilon(1e-6));
    for (const data::Augmentation& augmentation :
         {data::Augmentation{.shift = 3}, {.mirror = true}, {.cutout = 5}, {.rotation = 20}}) {
        CAPTURE(augmentation.shift);
        CAPTURE(augmentation.cutout);
        CAPTURE(augmentation.rotation);
        recipe.data.augmentation = augmentation;
        const auto distorted = curve_of(group, datasets, recipe);
        CHECK(std::abs(distorted[0].training_loss - plain[0].training_loss) > 1e-5);
        CHECK(std::abs(distorted[1].training_loss - distorted[0].training_loss) > 1e-5);
        CHECK(distorted[0].validation_loss == plain[0].validation_loss);
    }
}

TEST_CASE("training: micro-batches give the same successive steps as whole batches") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(120);
    auto recipe = small_recipe(40);
    const auto after_five_steps = [&](std::int64_t parts) {
        recipe.training.micro_batches = parts;
        Run run(group, datasets, recipe);
        (void)run->advance(5);
        CHECK(run->samples_trained() == 40);
        return arena_of(run->plan(), run->snapshot());
    };
    const auto whole = after_five_steps(1);
    CHECK(difference(after_five_steps(2), whole) < 1e-5);
    CHECK(difference(after_five_steps(8), whole) < 1e-5);
}

TEST_CASE("training: an empty micro-batch does not change the running statistics") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    auto recipe = small_recipe(20);
    recipe.model = residual_model();
    recipe.training.batch_size = 2;
    const auto statistics_in = [&](std::int64_t parts) {
        recipe.training.micro_batches = parts;
        Run run(group, datasets, recipe);
        (void)run->advance(1);
        return tensors(run->snapshot(), "weights/1.running");
    };
    const auto filled = statistics_in(2);
    CHECK(filled.size() == 8);
    CHECK(statistics_in(3) == filled);
}

TEST_CASE("training: the memory check includes the gradients of micro-batches and the averaged weights") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30.0);
    auto recipe = small_recipe(20);
    recipe.model = residual_model();
    const auto check_bytes = [&](std::int64_t batch, std::int64_t (*added)(const nn::ModelPlan&)) {
        const nn::ModelPlan plan = nn::plan_model(recipe.model, {image_size, image_size, 1}, classes, batch);
        SmallDevice any(0);
        const std::int64_t needed =
            nn::memory_bytes(any, plan) + added(plan) * static_cast<std::int64_t>(sizeof(float));
        const auto make = [&](std::int64_t bytes) {
            SmallDevice device(bytes);
            const train::Training training(device, group, *all_reduce, datasets, recipe);
        };
        CHECK_THROWS_AS(make(needed - 1), std::bad_alloc);
        CHECK_NOTHROW(make(needed));
    };
    const auto nothing = [](const nn::ModelPlan&) { return std::int64_t{0}; };
    const auto parameters = [](const nn::ModelPlan& plan) { return plan.parameters; };
    const auto weights = [](const nn::ModelPlan& plan) { return plan.parameters + plan.buffers; };
    check_bytes(8, nothing);
    recipe.training.micro_batches = 2;
    check_bytes(4, parameters);
    recipe.training.micro_batches = 1;
    recipe.training.average = 0.9;
    check_bytes(8, weights);
}
