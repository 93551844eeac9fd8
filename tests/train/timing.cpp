// Tests of the measurement of a training, with a simulated clock.
#include "finch/train/timing.hpp"

#include "finch/base/log.hpp"

#include "train/clocked_device.hpp"

using namespace finch;
using namespace finch::test;

namespace {

constexpr double seconds = 5000;

/// Epochs are logged, and these tests run many.
const bool is_quiet = [] {
    spdlog::set_level(spdlog::level::warn);
    return true;
}();

/// Collective over `group`. Measures a training by `recipe` with the simulated clock.
std::optional<double> measured(const comm::Group& group, const data::Dataset& images, const train::Recipe& recipe) {
    VirtualClock clock;
    ClockedDevice device(clock);
    ClockedAllReduce all_reduce(clock, group);
    return train::measure_training(device, group, all_reduce, images, recipe, seconds, [&clock] { return clock.now; });
}

/// Returns the duration of the whole training on the same clock.
double trained_seconds(const comm::Group& group, const data::Datasets& datasets, const train::Recipe& recipe) {
    VirtualClock clock;
    ClockedDevice device(clock);
    ClockedAllReduce all_reduce(clock, group);
    train::Training training(device, group, all_reduce, datasets, recipe);
    while (training.advance(100) == train::State::running) {
    }
    return clock.now - VirtualClock().now;
}

}  // namespace

TEST_CASE("measure_training: a few batches predict the time of the whole training") {
    const data::Datasets datasets = bright_rows(240);
    const train::Recipe recipe = small_recipe(80);
    for (const int ranks : {1, 2}) {
        CAPTURE(ranks);
        const comm::Group group = first_ranks(ranks);
        const auto predicted = measured(group, datasets.training, recipe);

        REQUIRE(predicted.has_value());
        const double whole = trained_seconds(group, datasets, recipe);
        if (group.is_leader()) {  // the leader waits for the other ranks, so its clock is the worker's
            CHECK(*predicted == doctest::Approx(whole));
        }
    }
}

TEST_CASE("measure_training: divergence, patience and a class without samples do not end the measurement") {
    const comm::Group group = alone();
    data::Datasets datasets = bright_rows(60);
    train::Recipe recipe = small_recipe(20);
    recipe.training.learning_rate = 1e30;
    recipe.training.patience = 1;
    recipe.training.balanced_classes = true;
    recipe.data.training_samples = 9;
    CHECK(measured(group, datasets.training, recipe).has_value());
}

TEST_CASE("measure_training: an impossible network, or too little memory on one rank, gives no time on any rank") {
    const comm::Group group = first_ranks(2);
    const data::Datasets datasets = bright_rows(60);
    train::Recipe recipe = small_recipe(20);
    recipe.model.insert(recipe.model.begin(), nn::PoolLayer{.kernel = 2 * image_size});
    CHECK(!measured(group, datasets.training, recipe).has_value());

    class Small : public WrappedDevice {
    public:
        [[nodiscard]] std::int64_t free_bytes() const override { return 1; }
    };
    Small small;
    WrappedDevice large;
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30.0);
    backend::Device& device = group.is_leader() ? static_cast<backend::Device&>(large) : small;
    CHECK(!train::measure_training(device, group, *all_reduce, datasets.training, small_recipe(20), 0.01).has_value());
}
