#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "finch/hdf5/file.hpp"

#include "files.hpp"

#include <doctest/doctest.h>

namespace {

using namespace finch;
using namespace finch::test;
namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

/// A file as any other program would write it: without our checksum in front.
void write_plain(const fs::path& path, const NamedArrays& arrays) {
    const hdf5::Hid file(hdf5::check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate"));
    for (const NamedArray& array : arrays) {
        hdf5::write_array(file.get(), array);
    }
}

NamedArrays good() {
    return {{"training/images", {2, 1, 3}, Bytes{1, 2, 3, 4, 5, 6}},
            {"training/labels", {2}, std::vector<std::int64_t>{1, 0}},
            {"test/images", {1, 1, 3}, Bytes{7, 8, 9}},
            {"test/labels", {1}, Bytes{1}}};
}

std::string problem_with(std::size_t changed, const NamedArray& array) {
    const TemporaryFolder folder;
    NamedArrays arrays = good();
    arrays[changed] = array;
    write_plain(folder.path() / "some.h5", arrays);
    return problem_of(data::Kind::hdf5, folder.path() / "some.h5");
}

TEST_CASE("hdf5: images and labels of a plain file are read") {
    const TemporaryFolder folder;
    write_plain(folder.path() / "some.h5", good());

    const auto sets = data::load({.kind = data::Kind::hdf5, .path = (folder.path() / "some.h5").string()}, 1);

    CHECK(sets.training.pixels == Bytes{1, 2, 3, 4, 5, 6});
    CHECK(sets.training.labels == std::vector<std::int32_t>{1, 0});
    CHECK(sets.training.width == 3);
    CHECK(sets.training.channels == 1);
    CHECK(sets.test.labels == std::vector<std::int32_t>{1});
}

TEST_CASE("hdf5: what is missing, of another type or of another shape is refused by name") {
    const auto check = [](const std::string& problem, const std::string& what) {
        CHECK_MESSAGE(contains(problem, "some.h5"), problem);
        CHECK_MESSAGE(contains(problem, what), problem);
        CHECK_MESSAGE(contains(problem, "expected"), problem);
    };

    check(problem_with(2, {"test/pictures", {1, 1, 3}, Bytes{7, 8, 9}}), "test/images cannot be read");
    check(problem_with(0, {"training/images", {2, 1, 3}, std::vector<float>(6)}), "training/images");
    check(problem_with(0, {"training/images", {2, 3}, Bytes(6)}), "training/images has the shape (2, 3)");
    check(problem_with(1, {"training/labels", {3}, Bytes{0, 1, 1}}), "training/labels has the shape (3)");
    check(problem_with(1, {"training/labels", {2}, std::vector<std::int64_t>{0, -1}}), "training/labels holds -1");
}

TEST_CASE("hdf5: a file that is missing, a folder or no HDF5 is refused") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "some.h5";

    CHECK(contains(problem_of(data::Kind::hdf5, path), "there is no such file"));
    CHECK(contains(problem_of(data::Kind::hdf5, folder.path()), "is no file"));
    write_bytes(path, Bytes(4096, 'x'));
    CHECK(contains(problem_of(data::Kind::hdf5, path), "cannot be opened as HDF5"));
}

}  // namespace
