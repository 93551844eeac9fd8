#include "finch/pixels/store.hpp"

#include "finch/base/files.hpp"

#include "files.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <unistd.h>

namespace finch::pixels {
namespace {

using test::Bytes;
using testing::TemporaryFolder;
namespace fs = std::filesystem;

Bytes read(const Store& store, const std::vector<std::int64_t>& images) {
    Bytes bytes(images.size() * store.bytes_per_image());
    store.read(images, bytes);
    return bytes;
}

Bytes expected(const std::vector<std::int64_t>& images, std::int64_t values) {
    Bytes bytes;
    for (const std::int64_t image : images) {
        const Bytes one = test::image_of(image, values);
        bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return bytes;
}

TEST_CASE("read: returns images in the given order, from all files") {
    const TemporaryFolder folder;
    const Store store({.values = 12}, {test::write_images(folder.path() / "a", 3, 5, 12),
                                       test::write_images(folder.path() / "b", 0, 4, 12, 5)});
    const std::vector<std::int64_t> some{8, 0, 1, 2, 3, 4, 5, 6, 2, 2};

    CHECK(store.images() == 9);
    CHECK(read(store, some) == expected(some, 12));
    CHECK(read(store, {}).empty());
}

TEST_CASE("read: a stride skips the bytes between images") {
    const TemporaryFolder folder;
    test::write_bytes(folder.path() / "a", {9, 1, 2, 9, 3, 4, 9, 5, 6});
    const Store store({.values = 2},
                      {{.path = (folder.path() / "a").string(), .place = {.offset = 1, .stride = 3, .images = 3}}});

    CHECK(read(store, {0, 1, 2}) == Bytes{1, 2, 3, 4, 5, 6});
}

TEST_CASE("read: planes become channels of each pixel, for bytes and for floats") {
    const TemporaryFolder folder;
    test::write_bytes(folder.path() / "a", {1, 2, 3, 10, 20, 30});  // two planes of three pixels
    const Place bytes{.offset = 0, .stride = 6, .images = 1, .planes = 2};
    const std::vector<float> planes{1.5F, 2.5F, -3.5F, 4.5F};  // two planes of two pixels
    Bytes raw(planes.size() * sizeof(float));
    std::memcpy(raw.data(), planes.data(), raw.size());
    test::write_bytes(folder.path() / "b", raw);
    const Place floats{.offset = 0, .stride = 16, .images = 1, .planes = 2};

    const Store of_bytes({.values = 6}, {{.path = (folder.path() / "a").string(), .place = bytes}});
    const Store of_floats({.values = 4, .value_bytes = 4}, {{.path = (folder.path() / "b").string(), .place = floats}});

    CHECK(read(of_bytes, {0}) == Bytes{1, 10, 2, 20, 3, 30});
    std::vector<float> got(4);
    std::memcpy(got.data(), read(of_floats, {0}).data(), raw.size());
    CHECK(got == std::vector<float>{1.5F, -3.5F, 2.5F, 4.5F});
}

TEST_CASE("a file that is truncated or changed during use is reported with its name") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "a";
    const Store store({.values = 100}, {test::write_images(path, 0, 10, 100)});

    SUBCASE("truncated") {
        fs::resize_file(path, 450);
        CHECK_THROWS_WITH_AS((void)read(store, {9}), doctest::Contains("/a: ends before byte 900"), StorageError);
        CHECK_THROWS_WITH_AS((void)read(store, {3, 4}), doctest::Contains("/a: ends before byte 450"), StorageError);
        CHECK_THROWS_WITH_AS((void)read(store, {0}), doctest::Contains("/a: was changed"), StorageError);
    }
    SUBCASE("overwritten") {
        test::write_images(path, 0, 10, 100, 1);
        fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(2));
        CHECK_THROWS_WITH_AS((void)read(store, {9}), doctest::Contains("/a: was changed"), StorageError);
    }
    SUBCASE("replaced by rename(), the usual way to write a file: the old contents stay readable") {
        test::write_images(folder.path() / "b", 0, 3, 100);
        const Bytes before = read(store, {9});
        fs::rename(folder.path() / "b", path);
        CHECK(read(store, {9}) == before);
    }
}

TEST_CASE("a file system error is reported with the byte offset and the system's message") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "a";
    const Store store({.values = 4}, {test::write_images(path, 0, 10, 4)});
    const Failure failure{Failure::Kind::error, EIO, 0, 16};

    CHECK(store.text(failure) == path.string() + ": cannot be read at byte 16: Input/output error");
}

TEST_CASE("a store opens only files with the given size and timestamp") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "a";
    Piece piece = test::write_images(path, 0, 10, 4);
    const Store known({.values = 4}, {piece});
    const Piece stamped = known.pieces().front();

    CHECK_NOTHROW(Store({.values = 4}, {stamped}));
    fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(2));
    CHECK_THROWS_WITH_AS(Store({.values = 4}, {stamped}), doctest::Contains("was changed"), StorageError);
    piece.place.images = 11;
    CHECK_THROWS_WITH_AS(Store({.values = 4}, {piece}), doctest::Contains("11 images from byte 0 on need more"),
                         FileError);
    piece.place.images = 10;
    for (const std::int64_t offset : {std::int64_t{-1}, std::int64_t{1}, std::numeric_limits<std::int64_t>::max()}) {
        piece.place.offset = offset;
        CHECK_THROWS_AS(Store({.values = 4}, {piece}), FileError);
    }
    piece.path = folder.path().string();
    CHECK_THROWS_WITH_AS(Store({.values = 4}, {piece}), doctest::Contains("a folder"), StorageError);
}

}  // namespace
}  // namespace finch::pixels
