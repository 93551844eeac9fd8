// Tests that trainings on images in a file give the same bits as on images in memory. Run with 2 ranks.
#include "finch/base/files.hpp"

#include "in_file.hpp"
#include "lagging_device.hpp"
#include "world.hpp"

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

/// Returns a recipe that uses 70 training images in uneven batches, 30 validation images, and all features that depend
/// on an image's index.
train::Recipe uneven_recipe() {
    auto recipe = small_recipe(30);
    recipe.training.batch_size = 11;
    recipe.training.micro_batches = 2;
    recipe.training.balanced_classes = true;
    recipe.data.augmentation = {.shift = 2, .mirror = true, .cutout = 2};
    return recipe;
}

NamedArrays trained(const comm::Group& group, const data::Datasets& datasets, const train::Recipe& recipe) {
    Run run(group, datasets, recipe);
    CHECK(run.finish() == State::finished);
    return run->snapshot();
}

/// Returns the message of the StorageError that finish() throws, or an empty string.
std::string failure_of(Run& run) {
    try {
        static_cast<void>(run.finish());
    } catch (const StorageError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("streamed images: same bits as images in memory, for any number of threads, on 1 and 2 ranks") {
    const auto datasets = bright_rows(100);
    auto recipe = uneven_recipe();
    for (const int ranks : {1, 2}) {
        const comm::Group group = ranks == 1 ? alone() : first_ranks(2);
        const NamedArrays expected = trained(group, datasets, recipe);
        for (const pixels::Prefetch prefetch : {pixels::Prefetch{1, 1}, {2, 4}, {8, 3}, {8, 100}}) {
            CAPTURE(ranks);
            CAPTURE(prefetch.threads);
            CAPTURE(prefetch.batches);
            const InFile file(datasets);
            recipe.data.prefetch = prefetch;

            CHECK(equal_but_for_seconds(trained(group, file.sets(), recipe), expected));
        }
    }
}

TEST_CASE("streamed images: an asynchronous device gives the same bits") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(100);
    const auto recipe = uneven_recipe();
    const NamedArrays expected = trained(group, datasets, recipe);
    const InFile file(datasets);
    for (const std::int64_t steps : {1, 3, 1000}) {
        LaggingDevice device;
        const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
        train::Training training(device, group, *all_reduce, file.sets(), recipe);
        while (training.advance(steps) == State::running) {
        }

        CHECK(equal_but_for_seconds(training.snapshot(), expected));
    }
}

TEST_CASE("streamed images: a training resumed in the middle of an epoch gives the same bits, in memory or streamed") {
    const comm::Group group = first_ranks(2);
    const auto datasets = bright_rows(100);
    const InFile file(datasets);
    const auto recipe = uneven_recipe();
    const NamedArrays expected = trained(group, datasets, recipe);
    for (const std::int64_t steps : {3, 9, 13}) {  // an epoch has 7 training and 5 validation steps
        Run first(group, file.sets(), recipe);
        static_cast<void>(first->advance(steps));
        const NamedArrays snapshot = first->snapshot();
        for (const data::Datasets* sets : {&file.sets(), &datasets}) {
            CAPTURE(steps);
            Run second(group, *sets, recipe);
            second->restore(snapshot);
            CHECK(second.finish() == State::finished);

            CHECK(equal_but_for_seconds(second->snapshot(), expected));
        }
    }
}

TEST_CASE("streamed images: a file truncated on one rank fails the training there; the other rank does not hang") {
    const bool fails = comm::rank_of(MPI_COMM_WORLD) == 1;
    const auto datasets = bright_rows(100);
    for (const std::int64_t steps : {0, 3, 8}) {  // before the first step, during training, during validation
        const comm::Group group = first_ranks(2);
        const InFile file(datasets);
        Run run(group, file.sets(), uneven_recipe());
        static_cast<void>(run->advance(steps));

        if (fails) {
            file.cut_short();
        }
        const std::string failure = failure_of(run);

        CHECK((failure.find("pixels: ends before byte") != std::string::npos) == fails);
        CHECK((!fails || run->state() == State::diverged));
    }
}

TEST_CASE("streamed images: a truncated file fails a training on one rank, also on an asynchronous device") {
    const auto datasets = bright_rows(100);
    const InFile file(datasets);
    const comm::Group group = alone();
    Run run(group, file.sets(), uneven_recipe());
    static_cast<void>(run->advance(2));
    LaggingDevice device;
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    train::Training ahead(device, group, *all_reduce, file.sets(), uneven_recipe());
    static_cast<void>(ahead.advance(2));

    file.cut_short();

    CHECK(failure_of(run).find("ends before byte") != std::string::npos);
    const auto finish = [&ahead] {
        while (ahead.advance(2) == State::running) {
        }
    };
    CHECK_THROWS_AS(finish(), StorageError);
}

TEST_CASE("streamed images: measure() gives the same as for images in memory, and fails on all ranks or on none") {
    const comm::Group group = first_ranks(2);
    const auto datasets = bright_rows(100);
    const InFile file(datasets);
    const auto recipe = uneven_recipe();
    const auto device = backend::make_cpu_device(1);
    const NamedArrays weights = weights_of(on_one_rank(datasets, recipe, 4));
    const auto expected = train::measure(*device, group, recipe, weights, datasets.training, 7);

    const auto measured = train::measure(*device, group, recipe, weights, file.sets().training, 7);
    CHECK(measured.loss == expected.loss);
    CHECK(measured.predictions == expected.predictions);

    if (group.rank() == 1) {
        file.cut_short();
    }
    CHECK_THROWS_WITH_AS(static_cast<void>(train::measure(*device, group, recipe, weights, file.sets().training, 7)),
                         doctest::Contains("ends before byte"), StorageError);
}

TEST_CASE("streamed images: hundreds of trainings leak no threads") {
    const auto threads = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                             std::filesystem::directory_iterator());
    };
    const InFile file(bright_rows(100));
    const comm::Group group = alone();
    { Run first(group, file.sets(), uneven_recipe()); }
    const auto before = threads();
    for (int i = 0; i < 300; ++i) {
        Run run(group, file.sets(), uneven_recipe());
        static_cast<void>(run->advance(1));
    }

    CHECK(threads() == before);
}
