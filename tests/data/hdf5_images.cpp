#include "finch/hdf5/file.hpp"

#include "files.hpp"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <functional>
#include <numeric>
#include <utility>

namespace {

using namespace finch;
using namespace finch::test;
namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

/// Writes a file as other programs do: without Finch's checksum in the user block.
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

TEST_CASE("hdf5: images and labels of a file without Finch's checksum are read") {
    const TemporaryFolder folder;
    write_plain(folder.path() / "some.h5", good());

    const auto sets = data::load({.kind = data::Kind::hdf5, .path = (folder.path() / "some.h5").string()}, 1);

    CHECK(sets.training.pixels == Bytes{1, 2, 3, 4, 5, 6});
    CHECK(sets.training.labels == std::vector<std::int32_t>{1, 0});
    CHECK(sets.training.width == 3);
    CHECK(sets.training.channels == 1);
    CHECK(sets.test.labels == std::vector<std::int32_t>{1});
}

TEST_CASE("hdf5: load_test reads a test set without a training set") {
    const TemporaryFolder folder;
    const NamedArrays arrays = good();
    write_plain(folder.path() / "some.h5", {arrays[2], arrays[3]});

    const auto sets = data::load_test({.kind = data::Kind::hdf5, .path = (folder.path() / "some.h5").string()}, 1);

    CHECK(sets.test.pixels == Bytes{7, 8, 9});
    CHECK(sets.test.classes == 2);
}

TEST_CASE("hdf5: a missing dataset, a wrong type and a wrong shape are rejected; the message names the dataset") {
    const auto check = [](const std::string& problem, const std::string& what) {
        CHECK_MESSAGE(contains(problem, "some.h5"), problem);
        CHECK_MESSAGE(contains(problem, what), problem);
        CHECK_MESSAGE(contains(problem, "expected"), problem);
    };

    check(problem_with(2, {"test/pictures", {1, 1, 3}, Bytes{7, 8, 9}}), "test/images cannot be read");
    check(problem_with(0, {"training/images", {2, 1, 3}, std::vector<std::int64_t>(6)}), "training/images");
    check(problem_with(0, {"training/images", {2, 3}, Bytes(6)}), "training/images has the shape (2, 3)");
    check(problem_with(1, {"training/labels", {3}, Bytes{0, 1, 1}}), "training/labels has the shape (3)");
    check(problem_with(1, {"training/labels", {2}, std::vector<std::int64_t>{0, -1}}), "training/labels holds -1");
}

TEST_CASE("hdf5: wrong labels are detected before the images are read, which may be large") {
    const TemporaryFolder folder;
    NamedArrays arrays = good();
    arrays[0] = {"training/images", {2, 1, 3}, std::vector<float>(6)};  // load() rejects these images if it reads them
    arrays[1] = {"training/labels", {3}, Bytes{0, 1, 1}};
    write_plain(folder.path() / "some.h5", arrays);

    CHECK(contains(problem_of(data::Kind::hdf5, folder.path() / "some.h5"),
                   "training/labels has the shape (3); expected (2)"));
}

TEST_CASE("hdf5: a missing file, a folder and a file of another format are rejected") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "some.h5";

    CHECK(contains(problem_of(data::Kind::hdf5, path), "there is no such file"));
    CHECK(contains(problem_of(data::Kind::hdf5, folder.path()), "is no file; tools/images_to_hdf5.py"));
    write_bytes(path, Bytes(4096, 'x'));
    CHECK(contains(problem_of(data::Kind::hdf5, path), "cannot be opened as HDF5"));
    CHECK(contains(problem_of(data::Kind::hdf5, folder.path() / "some.hdf5"),
                   "there is no such file (did you mean " + path.string() + "?)"));
}

/// Writes a training set and a test set of `shape`, with bytes that count up from 0. Both sets get the attribute
/// `axes`, unless `axes` is empty. Returns the loaded training set.
data::Dataset training_of(const fs::path& path, const std::vector<std::int64_t>& shape, const std::string& axes,
                          data::Axes configured) {
    std::int64_t size = 1;
    for (const std::int64_t one : shape) {
        size *= one;
    }
    Bytes pixels(static_cast<std::size_t>(size));
    std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
    const std::vector<std::int64_t> labels{0, 1};
    write_plain(path, {{"training/images", shape, pixels},
                       {"training/labels", {2}, labels},
                       {"test/images", shape, pixels},
                       {"test/labels", {2}, labels}});
    if (!axes.empty()) {
        const hdf5::Hid file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
        for (const char* name : {"training/images", "test/images"}) {
            hdf5::write_attribute(hdf5::Hid(H5Oopen(file.get(), name, H5P_DEFAULT)).get(), "axes", axes);
        }
    }
    return data::load({.kind = data::Kind::hdf5, .path = path.string(), .axes = configured}, 1).training;
}

TEST_CASE("hdf5: if only one axis can be the channels, load() finds this axis and moves it to the end") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "some.h5";
    const auto automatic = data::Axes::automatic;

    const data::Dataset last = training_of(path, {2, 5, 6, 3}, "", automatic);
    const data::Dataset first = training_of(path, {2, 3, 5, 6}, "", automatic);

    for (const data::Dataset& set : {last, first}) {
        CHECK(set.height == 5);
        CHECK(set.width == 6);
        CHECK(set.channels == 3);
    }
    // Index of pixel (image 1, row 2, column 4, channel 2) with the channels last.
    const std::size_t place = 90 + (2 * 6 + 4) * 3 + 2;
    CHECK(last.pixels[place] == place);
    CHECK(first.pixels[place] == 90 + 2 * 30 + 2 * 6 + 4);
}

TEST_CASE("hdf5: the attribute or data.axes decides if the shape is ambiguous") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "some.h5";

    CHECK(training_of(path, {2, 3, 4, 3}, "NCHW", data::Axes::automatic).height == 4);
    CHECK(training_of(path, {2, 3, 4, 3}, "NHWC", data::Axes::automatic).height == 3);
    CHECK(training_of(path, {2, 3, 4, 3}, "", data::Axes::nchw).height == 4);
    CHECK(training_of(path, {2, 3, 4, 3}, "", data::Axes::nhwc).height == 3);
    CHECK(training_of(path, {2, 8, 9, 16}, "NCHW", data::Axes::nchw).channels == 8);
    CHECK(training_of(path, {2, 5, 6}, "", data::Axes::nchw).channels == 1);
}

TEST_CASE("hdf5: ambiguous or contradictory axes are rejected; the message says what to write") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "some.h5";
    const auto refused = [&](const std::vector<std::int64_t>& shape, const char* axes, data::Axes configured,
                             const char* what) {
        CHECK_THROWS_WITH_AS(training_of(path, shape, axes, configured), doctest::Contains(what), ConfigError);
        CHECK_THROWS_WITH_AS(training_of(path, shape, axes, configured), doctest::Contains("some.h5: training/images"),
                             ConfigError);
        CHECK_THROWS_WITH_AS(training_of(path, shape, axes, configured), doctest::Contains("data.axes: NHWC or NCHW"),
                             ConfigError);
    };

    refused({2, 3, 5, 3}, "", data::Axes::automatic, "either of its axes can be the channels");
    refused({2, 8, 9, 16}, "", data::Axes::automatic, "none of its axes can be the channels");
    refused({2, 3, 5, 6}, "CHWN", data::Axes::automatic, "axes = \"CHWN\"");
    refused({2, 3, 5, 6}, "NHWC", data::Axes::nchw, "data.axes says otherwise");
}

TEST_CASE("hdf5: images in an external file, unwritten images and a shape larger than the file are rejected") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "some.h5";
    const auto problem = [&](const std::function<void(hid_t creation)>& set, hsize_t images) {
        NamedArrays arrays = good();
        arrays.erase(arrays.begin());
        write_plain(path, arrays);
        {
            const hdf5::Hid file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
            const hsize_t shape[]{images, 1, 3};
            const hdf5::Hid space(H5Screate_simple(3, shape, nullptr));
            const hdf5::Hid creation(H5Pcreate(H5P_DATASET_CREATE));
            set(creation.get());
            const hdf5::Hid dataset(H5Dcreate2(file.get(), "training/images", H5T_STD_U8LE, space.get(), H5P_DEFAULT,
                                               creation.get(), H5P_DEFAULT));
        }
        return problem_of(data::Kind::hdf5, path);
    };
    const auto outside = [&](hid_t creation) {
        H5Pset_external(creation, (folder.path() / "secret.bin").c_str(), 0, 6);
    };

    CHECK(contains(problem(outside, 2), "some.h5: training/images cannot be read (training/images is stored outside"));
    CHECK(contains(problem([](hid_t) {}, 2), "was never written"));
    CHECK(contains(problem([](hid_t) {}, hsize_t{1} << 40), "claims the shape (1099511627776, 1, 3)"));
}

data::Options options_of(const fs::path& path, data::Validation validation = {}) {
    return {.kind = data::Kind::hdf5, .path = path.string(), .validation = std::move(validation)};
}

std::vector<float> floats_of(const data::Dataset& set) {
    std::vector<float> floats(set.pixels.size() / sizeof(float));
    std::memcpy(floats.data(), set.pixels.data(), set.pixels.size());
    return floats;
}

TEST_CASE("hdf5: the test set is optional; a separate validation set is appended to the training images") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "some.h5";
    NamedArrays arrays = good();
    arrays.resize(2);
    write_plain(path, arrays);
    CHECK(data::load(options_of(path), 1).test.samples() == 0);
    CHECK_THROWS_WITH_AS((void)data::load(options_of(path, data::OwnValidation{}), 1),
                         doctest::Contains("has no validation set"), ConfigError);

    arrays.push_back({"validation/images", {2, 1, 3}, Bytes{9, 8, 7, 6, 5, 4}});
    arrays.push_back({"validation/labels", {2}, Bytes{3, 1}});
    write_plain(path, arrays);
    const data::Datasets own = data::load(options_of(path, data::OwnValidation{}), 1);
    CHECK(own.training.pixels == Bytes{1, 2, 3, 4, 5, 6, 9, 8, 7, 6, 5, 4});
    CHECK(own.training.labels == std::vector<std::int32_t>{1, 0, 3, 1});
    CHECK(own.training.classes == 4);
    CHECK(own.training.validation == std::vector<std::int64_t>{2, 3});
    CHECK(own.fingerprint != data::load(options_of(path), 1).fingerprint);

    const fs::path other = folder.path() / "other.h5";
    write_plain(other, {{"training/images", {1, 1, 3}, Bytes{40, 50, 60}}, {"training/labels", {1}, Bytes{1}}});
    const data::Datasets elsewhere = data::load(options_of(path, data::OwnValidation{other.string()}), 1);
    CHECK(elsewhere.training.pixels == Bytes{1, 2, 3, 4, 5, 6, 40, 50, 60});
    CHECK(elsewhere.training.validation == std::vector<std::int64_t>{2});

    write_plain(other, {{"training/images", {1, 3, 1}, Bytes{40, 50, 60}}, {"training/labels", {1}, Bytes{1}}});
    CHECK_THROWS_WITH_AS((void)data::load(options_of(path, data::OwnValidation{other.string()}), 1),
                         doctest::Contains("expected the same of both"), ConfigError);
}

TEST_CASE("hdf5: the values of a column select the validation images") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "some.h5";
    NamedArrays arrays = good();
    arrays[0] = {"training/images", {4, 1, 1}, Bytes{1, 2, 3, 4}};
    arrays[1] = {"training/labels", {4}, Bytes{0, 1, 0, 1}};
    arrays[2] = {"test/images", {1, 1, 1}, Bytes{7}};
    arrays.push_back({"training/site", {4}, std::vector<std::int64_t>{5, -7, 5, 9}});
    arrays.push_back({"training/weight", {4}, std::vector<double>{0.5, 1, 1, 1}});
    write_plain(path, arrays);
    const auto load = [&](const std::string& name, std::vector<std::int64_t> values) {
        return data::load(options_of(path, data::ColumnValidation{name, std::move(values)}), 1);
    };
    const auto by = [&](const std::string& name, std::vector<std::int64_t> values) {
        return load(name, std::move(values)).training.validation;
    };

    CHECK(by("site", {5}) == std::vector<std::int64_t>{0, 2});
    CHECK(by("site", {9, -7}) == std::vector<std::int64_t>{1, 3});
    CHECK(load("site", {5}).fingerprint != load("site", {9, -7}).fingerprint);
    CHECK_THROWS_WITH_AS((void)by("site", {5, 6}), doctest::Contains("training/site is 6 for no image"), ConfigError);
    CHECK_THROWS_WITH_AS((void)by("weight", {1}), doctest::Contains("training/weight holds 0.5"), ConfigError);
    CHECK_THROWS_WITH_AS((void)by("fold", {1}), doctest::Contains("training/fold"), ConfigError);
    CHECK_THROWS_WITH_AS((void)by("images", {1}), doctest::Contains("expected (4)"), ConfigError);
}

TEST_CASE("hdf5: float images and float targets are read; values that are not finite are rejected") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "some.h5";
    NamedArrays arrays{{"training/images", {2, 2, 1, 3}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
                       {"training/labels", {2, 2}, std::vector<double>{0.5, -3, 1e3, 4}}};
    write_plain(path, arrays);
    data::Options options = options_of(path);
    options.axes = data::Axes::nchw;
    options.answer = data::TargetKind::target;

    const data::Dataset set = data::load(options, 1).training;
    CHECK(set.float_pixels);
    CHECK(floats_of(set) == std::vector<float>{1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12});
    CHECK(set.targets == std::vector<float>{0.5, -3, 1e3, 4});
    CHECK(set.target_size == 2);
    CHECK(set.samples() == 2);
    CHECK(set.outputs() == 2);
    CHECK(set.labels.empty());

    std::vector<std::byte> block(data::block_bytes(set));
    data::write_block(set, block);
    const data::Dataset view = data::view_block(block);
    CHECK(view.pixels == set.pixels);
    CHECK(view.targets == set.targets);
    CHECK(view.float_pixels);
    CHECK(view.outputs() == 2);

    arrays[1].values = std::vector<double>{0.5, -3, INFINITY, 4};
    write_plain(path, arrays);
    CHECK_THROWS_WITH_AS((void)data::load(options, 1), doctest::Contains("training/labels holds inf"), ConfigError);
    arrays[1] = {"training/labels", {2, 2, 1}, std::vector<double>(4)};
    write_plain(path, arrays);
    CHECK_THROWS_WITH_AS((void)data::load(options, 1), doctest::Contains("expected (2) or (2, K)"), ConfigError);
    arrays[1] = {"training/labels", {2}, std::vector<double>{1, 0}};
    arrays[0].values = std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, NAN};
    write_plain(path, arrays);
    CHECK_THROWS_WITH_AS((void)data::load(options, 1), doctest::Contains("training/images holds nan"), ConfigError);
}

}  // namespace
