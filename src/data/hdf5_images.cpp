#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/file.hpp"

#include "readers.hpp"

#include <cmath>

namespace finch::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* expected =
    "expected training/images and test/images, uint8 (N, H, W) or (N, H, W, C), and training/labels and test/labels, "
    "whole numbers (N)";

hdf5::Hid open(const fs::path& path) {
    try {
        return hdf5::open_plain_file(path);
    } catch (const Error& error) {
        refuse(path, fmt::format("cannot be opened as HDF5 ({}); {}", error.what(), expected));
    }
}

NamedArray read(const fs::path& path, hid_t file, const std::string& name) {
    try {
        return hdf5::read_array(file, name);
    } catch (const Error& error) {
        refuse(path, fmt::format("{} cannot be read ({}); {}", name, error.what(), expected));
    }
}

std::vector<std::int32_t> labels_of(const fs::path& path, const NamedArray& array) {
    std::vector<std::int32_t> labels;
    const auto take = [&](const auto& values) {
        for (const auto value : values) {
            const auto number = static_cast<double>(value);
            if (!(number >= 0 && number < 65536) || std::floor(number) != number) {
                refuse(path, fmt::format("{} holds {}; expected whole numbers from 0 to 65535", array.name, value));
            }
            labels.push_back(static_cast<std::int32_t>(value));
        }
    };
    std::visit(take, array.values);
    return labels;
}

Dataset read_set(const fs::path& path, hid_t file, const std::string& group) {
    NamedArray images = read(path, file, group + "/images");
    const NamedArray labels = read(path, file, group + "/labels");
    const auto& shape = images.shape;
    auto* pixels = std::get_if<std::vector<std::uint8_t>>(&images.values);
    if (pixels == nullptr || shape.size() < 3 || shape.size() > 4 || pixels->empty()) {
        refuse(path, fmt::format("{}/images has the shape ({}) and elements that are {}; {}", group,
                                 fmt::join(shape, ", "), pixels == nullptr ? "no bytes" : "bytes", expected));
    }
    Dataset set{.height = shape[1], .width = shape[2], .channels = shape.size() == 4 ? shape[3] : 1};
    set.pixels = std::move(*pixels);
    set.labels = labels_of(path, labels);
    if (labels.shape.size() != 1 || set.samples() != shape[0]) {
        refuse(path, fmt::format("{}/labels has the shape ({}); expected ({}), one for each image", group,
                                 fmt::join(labels.shape, ", "), shape[0]));
    }
    return set;
}

}  // namespace

Sets read_hdf5(const fs::path& path) {
    if (!fs::is_regular_file(path)) {
        refuse(path, fmt::format("{}; {}", fs::exists(path) ? "is no file" : "there is no such file", expected));
    }
    const hdf5::Hid file = open(path);
    Dataset training = read_set(path, file.get(), "training");
    return {std::move(training), read_set(path, file.get(), "test")};
}

}  // namespace finch::data
