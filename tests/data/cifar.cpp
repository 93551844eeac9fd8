#include "files.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

namespace {

using namespace finch;
using namespace finch::test;
namespace fs = std::filesystem;

/// Returns one record: the label, then three planes. Pixel p of plane c has the value c·100 + p mod 50.
std::vector<std::uint8_t> record(std::uint8_t label) {
    std::vector<std::uint8_t> bytes{label};
    for (int plane = 0; plane < 3; ++plane) {
        for (int pixel = 0; pixel < 32 * 32; ++pixel) {
            bytes.push_back(static_cast<std::uint8_t>(plane * 100 + pixel % 50));
        }
    }
    return bytes;
}

void write_good_cifar(const fs::path& folder) {
    for (int batch = 1; batch <= 5; ++batch) {
        write_bytes(folder / ("data_batch_" + std::to_string(batch) + ".bin"),
                    record(static_cast<std::uint8_t>(batch)));
    }
    write_bytes(folder / "test_batch.bin", record(9));
}

TEST_CASE("cifar: planes become channels, and the batch files are joined in order") {
    const TemporaryFolder folder;
    write_good_cifar(folder.path());

    const auto sets = data::load({.kind = data::Kind::cifar, .path = folder.path().string()}, 1);

    CHECK(sets.training.labels == std::vector<std::int32_t>{1, 2, 3, 4, 5});
    CHECK(sets.test.labels == std::vector<std::int32_t>{9});
    CHECK(sets.training.classes == 10);
    CHECK(sets.training.height == 32);
    CHECK(sets.training.width == 32);
    CHECK(sets.training.channels == 3);
    const std::size_t second_image_pixel_7 = 3 * (32 * 32 + 7);
    CHECK(sets.training.pixels[second_image_pixel_7] == 7);
    CHECK(sets.training.pixels[second_image_pixel_7 + 1] == 107);
    CHECK(sets.training.pixels[second_image_pixel_7 + 2] == 207);
}

TEST_CASE("cifar: class names are kept up to the largest label; the file must list as many as the CIFAR version has") {
    const TemporaryFolder folder;
    write_good_cifar(folder.path());
    std::ofstream names(folder.path() / "batches.meta.txt");
    names << "airplane\r\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n" << std::flush;

    auto sets = data::load({.kind = data::Kind::cifar, .path = folder.path().string()}, 1);
    CHECK(sets.training.class_names.size() == 10);
    CHECK(sets.training.class_names[0] == "airplane");
    write_bytes(folder.path() / "test_batch.bin", record(3));
    sets = data::load({.kind = data::Kind::cifar, .path = folder.path().string()}, 1);
    CHECK(sets.training.class_names.size() == 6);
    names << "wagon\n" << std::flush;
    CHECK(contains(problem_of(data::Kind::cifar, folder.path()),
                   "batches.meta.txt: has 11 names of classes; expected 10"));
}

TEST_CASE("cifar: load_test reads a test set without a training set") {
    const TemporaryFolder folder;
    write_bytes(folder.path() / "test_batch.bin", record(9));

    const auto sets = data::load_test({.kind = data::Kind::cifar, .path = folder.path().string()}, 1);

    CHECK(sets.test.labels == std::vector<std::int32_t>{9});
    CHECK(sets.test.classes == 10);
}

TEST_CASE("cifar: the fine labels of CIFAR-100 are read; the test set and the validation set are optional") {
    const TemporaryFolder folder;
    fs::create_directory(folder.path() / "cifar-100-binary");
    const auto both = [](std::uint8_t fine) {
        std::vector<std::uint8_t> bytes = record(fine);
        bytes.insert(bytes.begin(), 19);
        return bytes;
    };
    write_bytes(folder.path() / "cifar-100-binary/train.bin", both(99));
    data::Options options{.kind = data::Kind::cifar, .path = folder.path().string()};

    auto sets = data::load(options, 1);
    CHECK(sets.training.labels == std::vector<std::int32_t>{99});
    CHECK(sets.training.classes == 100);
    CHECK(sets.training.pixels[1] == 100);
    CHECK(sets.test.samples() == 0);

    options.validation = data::OwnValidation{};
    CHECK_THROWS_WITH_AS((void)data::load(options, 1), doctest::Contains("has no validation set"), ConfigError);
    write_bytes(folder.path() / "cifar-100-binary/validation.bin", both(7));
    sets = data::load(options, 1);
    CHECK(sets.training.labels == std::vector<std::int32_t>{99, 7});
    CHECK(sets.training.validation == std::vector<std::int64_t>{1});

    write_bytes(folder.path() / "cifar-100-binary/train.bin", both(100));
    CHECK(contains(problem_of(data::Kind::cifar, folder.path()), "record 0 has the label 100; expected 0 to 99"));
}

TEST_CASE("cifar: a missing batch file, a wrong size and a wrong label are rejected; the message names the file") {
    const TemporaryFolder folder;
    write_good_cifar(folder.path());
    const fs::path third = folder.path() / "data_batch_3.bin";

    fs::remove(third);
    CHECK(contains(problem_of(data::Kind::cifar, folder.path()), "data_batch_3.bin: cannot be opened"));
    write_bytes(third, std::vector<std::uint8_t>(3072));
    CHECK(contains(problem_of(data::Kind::cifar, folder.path()),
                   "data_batch_3.bin: has 3072 bytes; expected a multiple of 3073"));
    fs::remove(third);
    REQUIRE(::mkfifo(third.c_str(), 0600) == 0);
    CHECK(contains(problem_of(data::Kind::cifar, folder.path()), "data_batch_3.bin: cannot be read: it is no file"));
    fs::remove(third);
    write_bytes(third, {});
    CHECK(contains(problem_of(data::Kind::cifar, folder.path()), "data_batch_3.bin: has 0 bytes"));
    write_bytes(third, record(10));
    CHECK(contains(problem_of(data::Kind::cifar, folder.path()), "data_batch_3.bin: record 0 has the label 10"));
}

}  // namespace
