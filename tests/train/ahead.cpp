// Tests of trainings on a device that runs asynchronously, as a GPU does.
#include "lagging_device.hpp"
#include "world.hpp"

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

/// Trains to the end with `steps` steps per call of advance(). Returns the snapshot.
NamedArrays trained(const comm::Group& group, backend::Device& device, const train::Recipe& recipe,
                    const data::Datasets& datasets, std::int64_t steps) {
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    train::Training training(device, group, *all_reduce, datasets, recipe);
    while (training.advance(steps) == State::running) {
    }
    CHECK(training.progress() == 1);
    return training.snapshot();
}

}  // namespace

TEST_CASE("asynchronous device: same bits as a synchronous one, for any number of steps per call") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(90);
    auto recipe = small_recipe(20);
    for (const bool averages : {false, true}) {
        recipe.training.average = averages ? std::optional(0.9) : std::nullopt;
        const auto cpu = backend::make_cpu_device(1);
        const NamedArrays expected = trained(group, *cpu, recipe, datasets, 1000);

        for (const std::int64_t steps : {1, 2, 3, 7, 1000}) {
            CAPTURE(averages);
            CAPTURE(steps);
            LaggingDevice device;
            CHECK(equal_but_for_seconds(trained(group, device, recipe, datasets, steps), expected));

            auto scaled = recipe;
            scaled.training.precision = train::Precision::float16;
            NamedArrays found = trained(group, device, scaled, datasets, steps);
            std::erase_if(found, [](const NamedArray& array) { return array.name.starts_with("loss_scale"); });
            CHECK(equal_but_for_seconds(found, expected));
        }
    }
}

TEST_CASE("asynchronous device: batches may be running after a call; the next call counts them") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(90);
    LaggingDevice device;
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    train::Training training(device, group, *all_reduce, datasets, small_recipe(20));

    static_cast<void>(training.advance(4));
    CHECK(training.steps_done() == 0);

    static_cast<void>(training.advance(1));
    CHECK(training.steps_done() == 4);
}

TEST_CASE("asynchronous device: a snapshot waits for running batches, and a restored training gives the same bits") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(90);
    auto recipe = small_recipe(20);
    recipe.training.average = 0.9;
    LaggingDevice device;
    const NamedArrays expected = trained(group, device, recipe, datasets, 3);

    for (const int calls : {1, 4, 5, 9}) {
        CAPTURE(calls);
        LaggingDevice first;
        const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
        train::Training interrupted(first, group, *all_reduce, datasets, recipe);
        for (int call = 0; call < calls; ++call) {
            static_cast<void>(interrupted.advance(2));
        }
        const auto cpu = backend::make_cpu_device(1);
        train::Training resumed(*cpu, group, *all_reduce, datasets, recipe);
        resumed.restore(interrupted.snapshot());
        while (resumed.advance(10) == State::running) {
        }

        CHECK(equal_but_for_seconds(resumed.snapshot(), expected));
    }
}

TEST_CASE("a training that needs more memory than the device has throws std::bad_alloc before it allocates anything") {
    class Full : public WrappedDevice {
    public:
        [[nodiscard]] std::int64_t free_bytes() const override { return 1000; }
        [[nodiscard]] backend::Buffer allocate(std::size_t) override { throw std::logic_error("allocated"); }
    };
    const comm::Group group = alone();
    const auto datasets = bright_rows(90);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    Full device;

    CHECK_THROWS_AS(train::Training(device, group, *all_reduce, datasets, small_recipe(20)), std::bad_alloc);
}
