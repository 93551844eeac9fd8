// Tests of the timing of an individual, with a simulated clock.
#include "finch/train/timing.hpp"

#include "finch/base/log.hpp"

#include "train/clocked_device.hpp"

#include <limits>

using namespace finch;
using namespace finch::test;

namespace {

constexpr double seconds = 5000;
constexpr double nodes = 3;  ///< of small_recipe(): convolution, pooling, linear layer

/// Epochs are logged, and these tests run many.
const bool is_quiet = [] {
    spdlog::set_level(spdlog::level::warn);
    return true;
}();

/// Collective over `group`. Measures the timing of `recipe` with the simulated clock.
std::optional<train::Timing> timed(const comm::Group& group, const data::Dataset& images, const train::Recipe& recipe) {
    VirtualClock clock;
    ClockedDevice device(clock);
    ClockedAllReduce all_reduce(clock, group);
    return train::measure_timing(device, group, all_reduce, images, recipe, seconds, [&clock] { return clock.now; });
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

TEST_CASE("measure_timing: a few batches predict the time of a batch and of the whole training") {
    const data::Datasets datasets = bright_rows(300);
    train::Recipe recipe = small_recipe(100);
    for (const int ranks : {1, 2}) {
        CAPTURE(ranks);
        const comm::Group group = first_ranks(ranks);
        const auto timing = timed(group, datasets.training, recipe);

        REQUIRE(timing.has_value());
        CHECK(timing->validation_batch ==
              doctest::Approx(VirtualClock::load + nodes * VirtualClock::forward + VirtualClock::loss));
        const double whole = train::training_seconds(
            *timing, train::epoch_batches(recipe, datasets.training, group.size()), recipe.training.epochs);
        if (group.is_leader()) {  // the leader waits for the other ranks, so its clock is the worker's
            CHECK(whole == doctest::Approx(trained_seconds(group, datasets, recipe)));
        } else {
            CHECK(trained_seconds(group, datasets, recipe) < whole);
        }
    }
}

TEST_CASE("epoch_batches: counts the batches of all ranks together, with any number of validation samples") {
    const data::Datasets datasets = bright_rows(60);
    train::Recipe recipe = small_recipe(20);
    CHECK(train::epoch_batches(recipe, datasets.training, 1).training == 5);
    CHECK(train::epoch_batches(recipe, datasets.training, 1).validation == 3);
    CHECK(train::epoch_batches(recipe, datasets.training, 3).validation == 3);  // 3 samples per rank and batch
    recipe.training.batch_size_per_rank = 8;
    CHECK(train::epoch_batches(recipe, datasets.training, 2).training == 3);
    CHECK(train::epoch_batches(recipe, datasets.training, 2).validation == 2);
    recipe.data.training_samples = 16;
    CHECK(train::epoch_batches(recipe, datasets.training, 2).training == 1);
}

TEST_CASE("measure_timing: divergence, patience and a class without samples do not end the measurement") {
    const comm::Group group = alone();
    data::Datasets datasets = bright_rows(60);
    train::Recipe recipe = small_recipe(20);
    recipe.training.learning_rate = 1e30;
    recipe.training.patience = 1;
    recipe.training.balanced_classes = true;
    recipe.data.training_samples = 9;
    CHECK(timed(group, datasets.training, recipe).has_value());
}

TEST_CASE("measure_timing: an impossible network, or too little memory on one rank, gives no timing on any rank") {
    const comm::Group group = first_ranks(2);
    const data::Datasets datasets = bright_rows(60);
    train::Recipe recipe = small_recipe(20);
    recipe.model.insert(recipe.model.begin(), nn::PoolLayer{.kernel = 2 * image_size});
    CHECK(!timed(group, datasets.training, recipe).has_value());

    class Small : public WrappedDevice {
    public:
        [[nodiscard]] std::int64_t free_bytes() const override { return 1; }
    };
    Small small;
    WrappedDevice large;
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30.0);
    backend::Device& device = group.is_leader() ? static_cast<backend::Device&>(large) : small;
    CHECK(!train::measure_timing(device, group, *all_reduce, datasets.training, small_recipe(20), 0.01).has_value());
}
