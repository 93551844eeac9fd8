#include "finch/run/load_data.hpp"

#include "finch/comm/mpi.hpp"

#include <doctest/doctest.h>

namespace finch::run {

TEST_CASE("load_on_each_node gives all ranks equal training data, and only world rank 0 the test set") {
    const data::Options options{.generated_samples = 60, .size = {9}};
    const data::Datasets expected = data::load(options, 4);

    const LoadedData loaded = load_on_each_node(options, 4);

    const data::Dataset& training = loaded.sets.training;
    CHECK(training.pixels == expected.training.pixels);
    CHECK(training.labels == expected.training.labels);
    CHECK(training.height == 9);
    CHECK(training.channels == 1);
    CHECK(training.classes == expected.training.classes);
    CHECK(loaded.sets.fingerprint == expected.fingerprint);
    CHECK(loaded.sets.test.samples() == (comm::rank_of(MPI_COMM_WORLD) == 0 ? 10 : 0));
    REQUIRE(loaded.memory);
    CHECK(loaded.memory->problem() == "");
    CHECK(static_cast<const void*>(training.pixels.data()) > static_cast<const void*>(loaded.memory->bytes().data()));
}

TEST_CASE("load_test_on_each_node gives all ranks equal test sets, with and without the training set") {
    const data::Options options{.generated_samples = 60, .size = {9}};
    const data::Datasets expected = data::load(options, 4);

    const LoadedData both = load_test_on_each_node(options, 4, Reads::both_sets);
    const LoadedData alone = load_test_on_each_node(options, 4, Reads::test_set);

    for (const LoadedData* loaded : {&both, &alone}) {
        const data::Dataset& test = loaded->sets.test;
        CHECK(test.pixels == expected.test.pixels);
        CHECK(test.labels == expected.test.labels);
        CHECK(static_cast<const void*>(test.pixels.data()) > static_cast<const void*>(loaded->memory->bytes().data()));
    }
    CHECK(both.sets.fingerprint == expected.fingerprint);
    CHECK(both.sets.test.classes == expected.test.classes);
    CHECK(both.sets.training.samples() == (comm::rank_of(MPI_COMM_WORLD) == 0 ? 60 : 0));
    CHECK(alone.sets.training.samples() == 0);
}

TEST_CASE("an error of the reading rank is thrown on every rank") {
    CHECK_THROWS_WITH_AS((void)load_on_each_node({.kind = data::Kind::idx, .path = "/nowhere"}, 1),
                         doctest::Contains("/nowhere"), ConfigError);
}

}  // namespace finch::run
