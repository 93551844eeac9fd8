#include "finch/hdf5/table.hpp"

#include "support/temporary_folder.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace finch;
using testing::TemporaryFolder;

namespace {

const std::vector<std::string> colours{"red", "green", "blue"};

struct Row {
    std::int32_t small;
    std::uint32_t natural;
    std::int64_t large;
    std::uint64_t huge;
    double real;
    hdf5::Pair pair;
    std::int32_t colour;
    std::string word;
    std::string story;
};

std::vector<Row> rows(std::size_t count) {
    std::vector<Row> all;
    for (std::size_t i = 0; i < count; ++i) {
        const auto number = static_cast<std::int64_t>(i);
        all.push_back({static_cast<std::int32_t>(-number),
                       static_cast<std::uint32_t>(i) + 4000000000U,
                       -number << 40,
                       ~std::uint64_t{i},
                       1.0 / static_cast<double>(number + 3),
                       {i, ~std::uint64_t{i}},
                       static_cast<std::int32_t>(i % 3),
                       std::string(i % 7, 'w'),
                       std::string((i * i) % 50, 's')});
    }
    return all;
}

void write(const std::filesystem::path& path, const std::vector<Row>& all) {
    hdf5::TableWriter table(all.size());
    table.column("small", [&](std::size_t row) { return all[row].small; });
    table.column("natural", [&](std::size_t row) { return all[row].natural; });
    table.column("large", [&](std::size_t row) { return all[row].large; });
    table.column("huge", [&](std::size_t row) { return all[row].huge; });
    table.column("real", [&](std::size_t row) { return all[row].real; });
    table.column("pair", [&](std::size_t row) { return all[row].pair; });
    table.enumeration("colour", colours, [&](std::size_t row) { return all[row].colour; });
    table.text("word", [&](std::size_t row) -> const std::string& { return all[row].word; });
    table.long_text("story", [&](std::size_t row) -> const std::string& { return all[row].story; });
    hdf5::write_file(path, [&](hid_t file) { table.write(file, "group/table"); });
}

/// Counts the rows of `table` that equal the rows of `all` from index `first` on.
std::size_t equal_rows(const hdf5::TableReader& table, const std::vector<Row>& all, std::size_t first) {
    const auto small = table.column<std::int32_t>("small");
    const auto natural = table.column<std::uint32_t>("natural");
    const auto large = table.column<std::int64_t>("large");
    const auto huge = table.column<std::uint64_t>("huge");
    const auto real = table.column<double>("real");
    const auto pair = table.column<hdf5::Pair>("pair");
    const auto colour = table.enumeration("colour", colours);
    const auto word = table.text("word");
    const auto story = table.text("story");
    std::size_t equal = 0;
    for (std::size_t i = 0; i < table.rows(); ++i) {
        const Row& row = all[first + i];
        equal += small[i] == row.small && natural[i] == row.natural && large[i] == row.large && huge[i] == row.huge &&
                         real[i] == row.real && pair[i] == row.pair && colour[i] == row.colour && word[i] == row.word &&
                         story[i] == row.story
                     ? 1U
                     : 0U;
    }
    return equal;
}

}  // namespace

TEST_CASE("round trip: a table with all column types and 0, 1 and 10000 rows, read as a whole and in blocks") {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{10000}}) {
        const TemporaryFolder folder;
        const std::vector<Row> all = rows(count);

        write(folder / "a.h5", all);
        const hdf5::Hid file = hdf5::open_file(folder / "a.h5");
        const hdf5::TableReader table(file.get(), "group/table");

        REQUIRE(table.rows() == count);
        CHECK(equal_rows(table, all, 0) == count);
        std::size_t equal = 0;
        std::size_t blocks = 0;
        hdf5::TableReader::read_in_blocks(file.get(), "group/table",
                                          [&](const hdf5::TableReader& block, std::size_t first) {
                                              REQUIRE(first + block.rows() <= count);
                                              CHECK(block.all_rows() == count);
                                              equal += equal_rows(block, all, first);
                                              ++blocks;
                                          });
        CHECK(equal == count);
        CHECK((count == 10000 ? blocks > 2 : blocks == 1));
    }
}

TEST_CASE("a chunked table is refused, because each block would decompress a large chunk again") {
    const TemporaryFolder folder;
    write(folder / "a.h5", rows(10000));
    REQUIRE(testing::run("h5repack -l group/table:CHUNK=10000 -f group/table:GZIP=1 " + (folder / "a.h5").string() +
                         " " + (folder / "packed.h5").string())
                .code == 0);
    const hdf5::Hid packed = hdf5::open_plain_file(folder / "packed.h5");

    const auto read = [&] { hdf5::TableReader::read_in_blocks(packed.get(), "group/table", [](const auto&, auto) {}); };
    CHECK_THROWS_WITH_AS(read(), doctest::Contains("group/table is stored in chunks"), FileError);
    CHECK_THROWS_AS(hdf5::TableReader(packed.get(), "group/table"), FileError);
    CHECK_THROWS_AS(hdf5::LargeTable(packed.get(), "group/table", "huge"), FileError);
}

TEST_CASE("an enum column is read by its words, independent of the numbers in the file") {
    const TemporaryFolder folder;
    write(folder / "a.h5", rows(3));
    const hdf5::Hid file = hdf5::open_file(folder / "a.h5");
    const hdf5::TableReader table(file.get(), "group/table");

    const std::vector<std::string> other_order{"blue", "none", "red", "green"};
    CHECK(table.enumeration("colour", other_order) == std::vector<std::int32_t>{2, 3, 0});

    const std::vector<std::string> too_few{"red", "green"};
    CHECK_THROWS_WITH_AS(static_cast<void>(table.enumeration("colour", too_few)), doctest::Contains("colour"),
                         FileError);
}

TEST_CASE("a missing column, a column of another type and a missing table throw FileError") {
    const TemporaryFolder folder;
    write(folder / "a.h5", rows(3));
    const hdf5::Hid file = hdf5::open_file(folder / "a.h5");
    const hdf5::TableReader table(file.get(), "group/table");

    CHECK_THROWS_WITH_AS(static_cast<void>(table.column<double>("tall")), doctest::Contains("tall is missing"),
                         FileError);
    CHECK_THROWS_WITH_AS(static_cast<void>(table.column<double>("small")), doctest::Contains("another type"),
                         FileError);
    CHECK_THROWS_WITH_AS(static_cast<void>(table.text("small")), doctest::Contains("not text"), FileError);
    CHECK_THROWS_AS(hdf5::TableReader(file.get(), "no/table"), FileError);
}

TEST_CASE("h5dump prints enum words, short texts and long texts") {
    const TemporaryFolder folder;
    write(folder / "a.h5", rows(8));

    const auto dumped = testing::run("h5dump -d /group/table -s 4 -c 1 " + (folder / "a.h5").string());

    CHECK(dumped.code == 0);
    CHECK(dumped.text.find("green,") != std::string::npos);
    CHECK(dumped.text.find("\"wwww") != std::string::npos);
    CHECK(dumped.text.find("\"ssssssssssssssss\"") != std::string::npos);
}

TEST_CASE("two columns with the same name are refused") {
    const TemporaryFolder folder;
    hdf5::TableWriter table(1);
    table.column("x", [](std::size_t) { return 1.0; });
    table.column("x", [](std::size_t) { return 2.0; });

    CHECK_THROWS_WITH_AS(hdf5::write_file(folder / "a.h5", [&](hid_t file) { table.write(file, "t"); }),
                         doctest::Contains("\"x\""), ApiError);
}
