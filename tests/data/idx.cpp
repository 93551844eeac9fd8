#include "files.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <zlib.h>

namespace {

using namespace finch;
using namespace finch::test;
namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

Bytes operator+(Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

const Bytes two_images{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
const Bytes one_image{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9};
const Bytes two_labels{0, 0, 8, 1, 0, 0, 0, 2, 4, 0};
const Bytes one_label{0, 0, 8, 1, 0, 0, 0, 1, 2};

/// Writes a valid set of files: two training images of 1 × 3 pixels and one test image.
void write_good(const fs::path& folder) {
    write_bytes(folder / "train-images-idx3-ubyte", two_images);
    write_bytes(folder / "train-labels-idx1-ubyte", two_labels);
    write_bytes(folder / "t10k-images-idx3-ubyte", one_image);
    write_bytes(folder / "t10k-labels-idx1-ubyte", one_label);
}

/// Returns the error message of load() for these training images and training labels.
std::string problem_with(const Bytes& images, const Bytes& labels) {
    const TemporaryFolder folder;
    write_good(folder.path());
    write_bytes(folder.path() / "train-images-idx3-ubyte", images);
    write_bytes(folder.path() / "train-labels-idx1-ubyte", labels);
    return problem_of(data::Kind::idx, folder.path());
}

TEST_CASE("idx: load_test reads a test set without a training set") {
    const TemporaryFolder folder;
    write_good(folder.path());
    fs::remove(folder.path() / "train-images-idx3-ubyte");

    const auto sets = data::load_test({.kind = data::Kind::idx, .path = folder.path().string()}, 1);

    CHECK(sets.test.pixels == Bytes{7, 8, 9});
    CHECK(sets.test.labels == std::vector<std::int32_t>{2});
    CHECK(sets.test.classes == 3);
    CHECK(sets.training.samples() == 0);
    CHECK(contains(problem_of(data::Kind::idx, folder.path()), "train-images"));
}

TEST_CASE("idx: pixels, shapes and labels are read as the format defines them") {
    const TemporaryFolder folder;
    write_good(folder.path());

    const auto sets = data::load({.kind = data::Kind::idx, .path = folder.path().string()}, 1);

    CHECK(sets.training.pixels == Bytes{1, 2, 3, 4, 5, 6});
    CHECK(sets.training.labels == std::vector<std::int32_t>{4, 0});
    CHECK(sets.training.height == 1);
    CHECK(sets.training.width == 3);
    CHECK(sets.training.channels == 1);
    CHECK(sets.training.classes == 5);
    CHECK(sets.test.pixels == Bytes{7, 8, 9});
    CHECK(sets.test.labels == std::vector<std::int32_t>{2});
    CHECK(sets.test.classes == 5);
}

TEST_CASE("idx: file names with a dot, and a fourth dimension for channels, are accepted") {
    const TemporaryFolder folder;
    write_good(folder.path());
    fs::remove(folder.path() / "train-images-idx3-ubyte");
    fs::remove(folder.path() / "t10k-images-idx3-ubyte");
    write_bytes(folder.path() / "train-images.idx3-ubyte",
                Bytes{0, 0, 8, 4, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6});
    write_bytes(folder.path() / "t10k-images.idx3-ubyte",
                Bytes{0, 0, 8, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3});

    const auto sets = data::load({.kind = data::Kind::idx, .path = folder.path().string()}, 1);

    CHECK(sets.training.width == 1);
    CHECK(sets.training.channels == 3);
}

TEST_CASE("idx: every malformed file is rejected; the message has its name and the reason") {
    const auto check = [](const Bytes& images, const Bytes& labels, const std::string& file, const std::string& what) {
        const std::string problem = problem_with(images, labels);
        CHECK_MESSAGE(contains(problem, file), problem);
        CHECK_MESSAGE(contains(problem, what), problem);
    };
    const Bytes size_2_1_3{0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3};

    check({}, two_labels, "train-images-idx3-ubyte", "header ends too early");
    check({0, 0, 8, 3, 0, 0}, two_labels, "train-images-idx3-ubyte", "header ends too early");
    check(Bytes{1, 0, 8, 3} + size_2_1_3, two_labels, "train-images", "no IDX file");
    check(Bytes{0, 0, 13, 3} + size_2_1_3, two_labels, "train-images", "expected 0x08");
    check(two_labels, two_labels, "train-images", "1 dimensions; expected 3 or 4");
    check(two_images, two_images, "train-labels", "3 dimensions; expected 1");
    check(Bytes{0, 0, 8, 3} + size_2_1_3 + Bytes{1, 2, 3, 4, 5}, two_labels, "train-images", "5 of 6 elements");
    check(two_images + Bytes{9}, two_labels, "train-images", "has data after the 6 elements");
    check(two_images, one_label, "train-labels", "has 1 labels");
    check({0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3}, two_labels, "train-images", "announces 0 x 1 x 3");
    check({0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, two_labels, "train-images",
          "announces 4294967295 x 4294967295");
}

TEST_CASE("idx: a header that announces a terabyte is rejected without allocating that memory") {
    const Bytes header{0, 0, 8, 3, 0, 0, 0, 2, 0, 8, 0, 0, 0, 15, 255, 255};

    const std::string problem = problem_with(header + Bytes{1, 2, 3}, two_labels);

    CHECK_MESSAGE(contains(problem, "more than a file of 19 bytes can hold"), problem);
}

TEST_CASE("idx: a small gzipped file that announces a terabyte, or unpacks to far more data, is rejected") {
    const TemporaryFolder folder;
    data::generate({.generated_samples = 12, .size = {8}}, 1, folder.path().string());
    const auto pack = [&](const Bytes& begin, std::size_t zeros) {
        const gzFile file = gzopen((folder.path() / "train-images-idx3-ubyte.gz").c_str(), "wb9");
        gzwrite(file, begin.data(), static_cast<unsigned>(begin.size()));
        const Bytes nothing(zeros);
        gzwrite(file, nothing.data(), static_cast<unsigned>(nothing.size()));
        gzclose(file);
        return problem_of(data::Kind::idx, folder.path());
    };

    const std::string promised = pack({0, 0, 8, 3, 0, 0, 0, 12, 0, 8, 0, 0, 0, 15, 255, 255}, 5);
    const std::string endless = pack({0, 0, 8, 3, 0, 0, 0, 12, 0, 0, 0, 8, 0, 0, 0, 8}, 50000000);

    CHECK_MESSAGE(contains(promised, "12 x 524288 x 1048575 elements"), promised);
    CHECK_MESSAGE(contains(endless, "has data after the 768 elements"), endless);
}

TEST_CASE("idx: a named pipe is rejected immediately; load() does not wait for data") {
    const TemporaryFolder folder;
    write_good(folder.path());
    fs::remove(folder.path() / "train-images-idx3-ubyte");
    REQUIRE(::mkfifo((folder.path() / "train-images-idx3-ubyte").c_str(), 0600) == 0);

    CHECK(
        contains(problem_of(data::Kind::idx, folder.path()), "train-images-idx3-ubyte: cannot be read: it is no file"));
}

TEST_CASE("idx: a mean on the scale of bytes (0 to 255) is rejected") {
    const TemporaryFolder folder;
    data::generate({.generated_samples = 12, .size = {8}}, 1, folder.path().string());
    data::Options options{.kind = data::Kind::idx, .path = folder.path().string(), .mean = {33.3}};

    CHECK_THROWS_WITH_AS((void)data::load(options, 1), doctest::Contains("data.normalize.mean: is 33.3"), ConfigError);
    options.mean = {0.13};
    CHECK_NOTHROW((void)data::load(options, 1));
}

TEST_CASE("idx: test images with another shape than the training images are rejected") {
    const TemporaryFolder folder;
    write_good(folder.path());
    write_bytes(folder.path() / "t10k-images-idx3-ubyte",
                Bytes{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 7, 8, 9});

    const std::string problem = problem_of(data::Kind::idx, folder.path());

    CHECK_MESSAGE(contains(problem, "training images are 1 x 3 x 1 bytes, test images 3 x 1 x 1 bytes"), problem);
}

TEST_CASE("idx: for a missing folder or file the message says what was expected and how to get it") {
    const TemporaryFolder folder;
    const std::string none = problem_of(data::Kind::idx, folder.path() / "nowhere");
    CHECK_MESSAGE(contains(none, "nowhere: there is no such folder"), none);
    CHECK_MESSAGE(contains(none, "tools/fetch_mnist.sh"), none);

    write_good(folder.path());
    fs::remove(folder.path() / "t10k-labels-idx1-ubyte");
    const std::string one = problem_of(data::Kind::idx, folder.path());
    CHECK_MESSAGE(contains(one, "there is no t10k-labels"), one);
}

TEST_CASE("idx: a truncated gzipped file and one with a flipped bit are rejected") {
    const TemporaryFolder folder;
    data::generate({.generated_samples = 12, .size = {8}}, 1, folder.path().string());
    const fs::path path = folder.path() / "train-images-idx3-ubyte.gz";
    std::ifstream file(path, std::ios::binary);
    const Bytes whole{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    REQUIRE(problem_of(data::Kind::idx, folder.path()) == "");

    for (const std::size_t missing : {std::size_t{1}, std::size_t{8}, whole.size() / 2, whole.size() - 5}) {
        write_bytes(path, Bytes(whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(missing)));
        CHECK_MESSAGE(contains(problem_of(data::Kind::idx, folder.path()), "train-images"), missing);
    }
    Bytes flipped = whole;
    flipped[whole.size() / 2] ^= 1;
    write_bytes(path, flipped);
    CHECK(contains(problem_of(data::Kind::idx, folder.path()), "train-images"));
}

TEST_CASE("load: the number of means and deviations must be the number of channels") {
    const TemporaryFolder folder;
    write_good(folder.path());

    CHECK_THROWS_WITH_AS(
        (void)data::load({.kind = data::Kind::idx, .path = folder.path().string(), .mean = {0.1, 0.2}}, 1),
        doctest::Contains("data.normalize.mean: has 2 values, but the images have 1 channels"), ConfigError);
}

TEST_CASE("load: one changed pixel changes the fingerprint") {
    const TemporaryFolder folder;
    write_good(folder.path());
    const data::Options options{.kind = data::Kind::idx, .path = folder.path().string()};
    const std::string before = data::load(options, 1).fingerprint;
    CHECK(data::load(options, 2).fingerprint == before);

    Bytes other = two_images;
    other.back() ^= 1;
    write_bytes(folder.path() / "train-images-idx3-ubyte", other);

    CHECK(data::load(options, 1).fingerprint != before);
}

}  // namespace
