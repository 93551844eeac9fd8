#include "finch/base/format.hpp"

#include "readers.hpp"

#include <algorithm>
#include <fstream>

namespace finch::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* how_to_get =
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz unpacks to cifar-10-batches-bin";
constexpr std::int64_t side = 32;
constexpr std::int64_t planes = 3;
constexpr std::int64_t record = 1 + planes * side * side;  // a label, then the planes red, green, blue, row by row
constexpr std::int64_t classes = 10;

Dataset no_images() {
    return {.height = side, .width = side, .channels = planes};
}

/// Where the files are in `folder`.
fs::path place_of(const fs::path& folder) {
    need_folder(folder, how_to_get);
    const fs::path unpacked = folder / "cifar-10-batches-bin";
    return fs::exists(unpacked) ? unpacked : folder;
}

std::vector<std::uint8_t> read_bytes(const fs::path& path) {
    if (!fs::exists(path)) {
        refuse(path, fmt::format("cannot be opened; expected the binary version of CIFAR-10: {}", how_to_get));
    }
    const std::int64_t size = size_of(path);
    if (size == 0 || size % record != 0) {
        refuse(path, fmt::format("has {} bytes; expected a multiple of {} (a label and {} x {} x {} pixels)", size,
                                 record, side, side, planes));
    }
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
    std::ifstream file(path, std::ios::binary);
    if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size))) {
        refuse(path, "cannot be read to its end");
    }
    return bytes;
}

void append(Dataset& set, const fs::path& path) {
    const auto bytes = read_bytes(path);
    for (std::size_t at = 0; at < bytes.size(); at += record) {
        if (bytes[at] >= classes) {
            refuse(path,
                   fmt::format("record {} has the label {}; expected 0 to {}", at / record, bytes[at], classes - 1));
        }
        set.labels.own().push_back(bytes[at]);
        const std::uint8_t* image = bytes.data() + at + 1;
        for (std::int64_t pixel = 0; pixel < side * side; ++pixel) {
            for (std::int64_t plane = 0; plane < planes; ++plane) {
                set.pixels.own().push_back(image[plane * side * side + pixel]);
            }
        }
    }
}

}  // namespace

Sets read_cifar(const fs::path& folder) {
    Sets sets{.training = no_images(), .test = {}};
    for (int batch = 1; batch <= 5; ++batch) {
        append(sets.training, place_of(folder) / fmt::format("data_batch_{}.bin", batch));
    }
    sets.test = read_cifar_test(folder);
    return sets;
}

Dataset read_cifar_test(const fs::path& folder) {
    Dataset test = no_images();
    append(test, place_of(folder) / "test_batch.bin");
    return test;
}

}  // namespace finch::data
