#include "finch/base/error.hpp"
#include "finch/hdf5/file.hpp"

#include "support/temporary_folder.hpp"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>

using namespace finch;
using testing::TemporaryFolder;

namespace {

template <class T>
std::vector<T> values_of(const NamedArray& array) {
    return std::get<std::vector<T>>(array.values);
}

/// Writes a dataset with the file type `stored`, which Finch itself does not write.
template <class T>
void write_as(hid_t file, const char* name, hid_t stored, hid_t memory, const std::vector<T>& values) {
    const hsize_t size = values.size();
    const hdf5::Hid space(H5Screate_simple(1, &size, nullptr));
    const hdf5::Hid dataset(H5Dcreate2(file, name, stored, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dwrite(dataset.get(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
}

}  // namespace

TEST_CASE("round trip: arrays of all types keep their names, shapes and bits") {
    const TemporaryFolder folder;
    const float odd = std::nanf("0x123");
    const NamedArrays written{
        {"counts", {3}, std::vector<std::int64_t>{-1, 0, std::numeric_limits<std::int64_t>::min()}},
        {"empty", {0, 3}, std::vector<double>{}},
        {"image", {2, 1, 2}, std::vector<std::uint8_t>{0, 127, 128, 255}},
        {"one", {}, std::vector<double>{0.1}},
        {"weights/0.weight", {2, 2}, std::vector<float>{1.5F, -0.0F, odd, 1e-42F}},
    };

    hdf5::write_file(folder / "a.h5", [&](hid_t file) {
        for (const NamedArray& array : written) {
            hdf5::write_array(file, array);
        }
        hdf5::write_text(file, "text", "is no array");
    });
    const NamedArrays read = hdf5::read_arrays(hdf5::open_file(folder / "a.h5").get());

    REQUIRE(read.size() == written.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
        CHECK(read[i].name == written[i].name);
        CHECK(read[i].shape == written[i].shape);
        CHECK(read[i].values.index() == written[i].values.index());
    }
    CHECK(values_of<std::int64_t>(read[0]) == values_of<std::int64_t>(written[0]));
    CHECK(values_of<std::uint8_t>(read[2]) == values_of<std::uint8_t>(written[2]));
    CHECK(values_of<double>(read[3]) == std::vector<double>{0.1});
    CHECK(std::memcmp(values_of<float>(read[4]).data(), values_of<float>(written[4]).data(), 4 * sizeof(float)) == 0);
}

TEST_CASE("integers of other widths and byte orders are read as int64, and big-endian float32 as float") {
    const TemporaryFolder folder;
    {
        const hdf5::Hid file(H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        write_as<int>(file.get(), "big_endian", H5T_STD_I16BE, H5T_NATIVE_INT, {-300, 5});
        write_as<int>(file.get(), "small", H5T_STD_I8LE, H5T_NATIVE_INT, {-3});
        write_as<double>(file.get(), "half", H5T_IEEE_F32BE, H5T_NATIVE_DOUBLE, {0.5});
    }

    const hdf5::Hid file = hdf5::open_plain_file(folder / "a.h5");

    CHECK(values_of<std::int64_t>(hdf5::read_array(file.get(), "big_endian")) == std::vector<std::int64_t>{-300, 5});
    CHECK(values_of<std::int64_t>(hdf5::read_array(file.get(), "small")) == std::vector<std::int64_t>{-3});
    CHECK(values_of<float>(hdf5::read_array(file.get(), "half")) == std::vector<float>{0.5F});
}

TEST_CASE("round trip: attributes and texts, including long and empty texts") {
    const TemporaryFolder folder;
    const std::string book(1000000, 'x');

    hdf5::write_file(folder / "a.h5", [&](hid_t file) {
        hdf5::write_attribute(file, "word", "größer");
        hdf5::write_attribute(file, "nothing", "");
        hdf5::write_attribute(file, "whole", std::int64_t{-5});
        hdf5::write_attribute(file, "real", 0.1);
        hdf5::write_unsigned_attribute(file, "large", std::uint64_t{0} - 2);
        hdf5::write_text(file, "config", book);
        hdf5::write_text(file, "none", "");
    });
    const hdf5::Hid file = hdf5::open_file(folder / "a.h5");

    CHECK(hdf5::read_text_attribute(file.get(), "word") == "größer");
    CHECK(hdf5::read_text_attribute(file.get(), "nothing").empty());
    CHECK(hdf5::read_int_attribute(file.get(), "whole") == -5);
    CHECK(hdf5::read_double_attribute(file.get(), "real") == 0.1);
    CHECK(hdf5::read_unsigned_attribute(file.get(), "large") == 18446744073709551614U);
    CHECK(hdf5::read_text(file.get(), "config") == book);
    CHECK(hdf5::read_text(file.get(), "none").empty());
}

TEST_CASE("round trip: attributes with several texts, including fixed-length texts and 20000 texts") {
    const TemporaryFolder folder;
    const std::vector<std::string> few{"größe", "", "a,b"};
    const std::vector<std::string> many(20000, "some words");
    hdf5::write_file(folder / "a.h5", [&](hid_t file) {
        hdf5::write_texts_attribute(file, "few", few);
        hdf5::write_texts_attribute(file, "many", many);
        hdf5::write_attribute(file, "one", "text");
        hdf5::write_attribute(file, "number", 0.5);
        const hdf5::Hid type(H5Tcopy(H5T_C_S1));
        H5Tset_size(type.get(), 3);
        const hsize_t count = 2;
        const hdf5::Hid space(H5Screate_simple(1, &count, nullptr));
        const hdf5::Hid fixed(H5Acreate2(file, "fixed", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
        H5Awrite(fixed.get(), type.get(), "ab\0cde");
    });

    const hdf5::Hid file = hdf5::open_file(folder / "a.h5");

    CHECK(hdf5::read_texts_attribute(file.get(), "few") == few);
    CHECK(hdf5::read_texts_attribute(file.get(), "many") == many);
    CHECK(hdf5::read_texts_attribute(file.get(), "fixed") == std::vector<std::string>{"ab", "cde"});
    for (const char* name : {"one", "number", "none"}) {
        CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::read_texts_attribute(file.get(), name)), doctest::Contains(name),
                             FileError);
    }
}

TEST_CASE("reading a missing object or an object of another type throws FileError with the name") {
    const TemporaryFolder folder;
    hdf5::write_file(folder / "a.h5", [&](hid_t file) { hdf5::write_text(file, "text", "words"); });
    const hdf5::Hid file = hdf5::open_file(folder / "a.h5");

    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::read_array(file.get(), "weights")), doctest::Contains("weights"),
                         FileError);
    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::read_array(file.get(), "text")), doctest::Contains("numbers"),
                         FileError);
    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::read_int_attribute(file.get(), "seed")), doctest::Contains("seed"),
                         FileError);
    CHECK_THROWS_WITH_AS(static_cast<void>(hdf5::read_text(file.get(), "config")), doctest::Contains("config"),
                         FileError);
}

TEST_CASE("write_array refuses an array with a shape that does not fit the number of values") {
    const TemporaryFolder folder;
    const NamedArray wrong{"wrong", {2, 3}, std::vector<float>(5)};

    CHECK_THROWS_WITH_AS(hdf5::write_file(folder / "a.h5", [&](hid_t file) { hdf5::write_array(file, wrong); }),
                         doctest::Contains("wrong has 5 values, but the shape (2, 3)"), Error);
}
