#include "epoch_arrays.hpp"

#include <doctest/doctest.h>

namespace {

using namespace finch;

struct Row {
    std::int32_t first = 0;
    std::int32_t whole = -1;
    double real = -1;
};
constexpr auto fields_of(const Row*) {
    return std::tuple{Field{"first", &Row::first, ""}, Field{"whole", &Row::whole, ""}.since(2),
                      Field{"real", &Row::real, ""}.since(3)};
}

NamedArrays snapshot_of_two() {
    NamedArrays snapshot;
    train::append_later_fields<Row>(snapshot, std::vector<Row>{{1, 20, 0.25}, {2, 30, 0.5}});
    return snapshot;
}

TEST_CASE("a snapshot has every number that version 1 has not") {
    std::vector<Row> rows(2);

    train::read_later_fields<Row>(snapshot_of_two(), rows);

    CHECK(rows[0].whole == 20);
    CHECK(rows[1].whole == 30);
    CHECK(rows[0].real == 0.25);
    CHECK(rows[1].real == 0.5);
    CHECK(rows[1].first == 0);
}

TEST_CASE("what the snapshot of an earlier version has not stays as it is") {
    NamedArrays snapshot = snapshot_of_two();
    std::erase_if(snapshot, [](const NamedArray& array) { return array.name == "epoch_real"; });
    std::vector<Row> rows(2);

    train::read_later_fields<Row>(snapshot, rows);

    CHECK(rows[1].whole == 30);
    CHECK(rows[1].real == -1);
}

TEST_CASE("arrays of another length or type are refused") {
    std::vector<Row> three(3);
    std::vector<Row> two(2);
    NamedArrays mistyped = snapshot_of_two();
    std::swap(mistyped[0].values, mistyped[1].values);

    CHECK_THROWS_WITH_AS(train::read_later_fields<Row>(snapshot_of_two(), three),
                         "the snapshot's array epoch_whole is not 3 numbers", FileError);
    CHECK_THROWS_AS(train::read_later_fields<Row>(mistyped, two), FileError);
}

}  // namespace
