#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/file.hpp"

#include "readers.hpp"

#include <algorithm>
#include <cmath>

namespace finch::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* expected =
    "expected training/images and test/images, uint8 (N, H, W), (N, H, W, C) or (N, C, H, W), and training/labels and "
    "test/labels, whole numbers (N)";
constexpr std::int64_t usual_channels = 4;  // an axis of so many at most may be the channels without being told so

hdf5::Hid open(const fs::path& path) {
    try {
        return hdf5::open_plain_file(path);
    } catch (const Error& error) {
        refuse(path, fmt::format("cannot be opened as HDF5 ({}); {}", error.what(), expected));
    }
}

/// What `reading` gives, whose failure is the user's: it names `name`.
template <class Reading>
auto read(const fs::path& path, const std::string& name, Reading reading) {
    try {
        return reading();
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

using Shape = std::vector<std::int64_t>;

/// What the images' attribute `axes` says; empty where there is none.
std::string told_axes(const fs::path& path, hid_t file, const std::string& name) {
    if (H5Aexists_by_name(file, name.c_str(), "axes", H5P_DEFAULT) <= 0) {
        return "";
    }
    return read(path, name, [&] {
        const hdf5::Hid images(hdf5::check_reading(H5Oopen(file, name.c_str(), H5P_DEFAULT), name));
        return hdf5::read_text_attribute(images.get(), "axes");
    });
}

/// Whether images of four axes are (N, C, H, W): the configuration or their attribute says it, or one of the two places
/// alone has a size that channels usually have.
bool channels_come_first(const fs::path& path, const std::string& name, const Shape& shape, const std::string& told,
                         Axes axes) {
    const auto refuse_axes = [&](const std::string& what) {
        refuse(path, fmt::format("{} has the shape ({}) and {}; expected the attribute axes = \"NHWC\" or \"NCHW\" on "
                                 "it, or data.axes: NHWC or NCHW in the configuration",
                                 name, fmt::join(shape, ", "), what));
    };
    if (!told.empty() && told != "NHWC" && told != "NCHW") {
        refuse_axes(fmt::format("the attribute axes = \"{}\"", told));
    }
    if (!told.empty() && axes != Axes::automatic && (told == "NCHW") != (axes == Axes::nchw)) {
        refuse_axes(fmt::format("the attribute axes = \"{}\", but data.axes says otherwise", told));
    }
    if (!told.empty() || axes != Axes::automatic) {
        return told == "NCHW" || axes == Axes::nchw;
    }
    const bool first = shape[1] <= usual_channels;
    const bool last = shape[3] <= usual_channels;
    if (first == last) {
        refuse_axes(
            fmt::format("{} of its axes can be the channels (1 to {})", first ? "either" : "none", usual_channels));
    }
    return first;
}

/// (N, C, H, W) to (N, H, W, C), one image at a time.
void put_channels_last(Dataset& set) {
    const std::int64_t plane = set.height * set.width;
    std::vector<std::uint8_t> image(static_cast<std::size_t>(set.pixels_per_image()));
    std::vector<std::uint8_t>& pixels = set.pixels.own();
    for (auto at = pixels.begin(); at != pixels.end(); at += set.pixels_per_image()) {
        std::copy_n(at, image.size(), image.begin());
        for (std::int64_t pixel = 0; pixel < plane; ++pixel) {
            for (std::int64_t channel = 0; channel < set.channels; ++channel) {
                at[pixel * set.channels + channel] = image[static_cast<std::size_t>(channel * plane + pixel)];
            }
        }
    }
}

Dataset read_set(const fs::path& path, hid_t file, const std::string& group, Axes axes) {
    const std::string name = group + "/images";
    const Shape shape = read(path, name, [&] { return hdf5::read_shape(file, name); });
    const auto refuse_images = [&](const char* what) {
        refuse(path, fmt::format("{} has the shape ({}){}; {}", name, fmt::join(shape, ", "), what, expected));
    };
    if (shape.size() < 3 || shape.size() > 4 || std::find(shape.begin(), shape.end(), 0) != shape.end()) {
        refuse_images("");
    }
    Dataset set{.height = shape[1], .width = shape[2], .channels = shape.size() == 4 ? shape[3] : 1};
    const bool first = shape.size() == 4 && channels_come_first(path, name, shape, told_axes(path, file, name), axes);
    if (first) {
        set.channels = shape[1];
        set.height = shape[2];
        set.width = shape[3];
    }
    // The labels are small, and say at once whether the images can be right.
    const std::string label_name = group + "/labels";
    const Shape label_shape = read(path, label_name, [&] { return hdf5::read_shape(file, label_name); });
    if (label_shape != Shape{shape[0]}) {
        refuse(path, fmt::format("{} has the shape ({}); expected ({}), one for each image", label_name,
                                 fmt::join(label_shape, ", "), shape[0]));
    }
    set.labels = labels_of(path, read(path, label_name, [&] { return hdf5::read_array(file, label_name); }));
    need_memory(path, shape[0] * set.pixels_per_image());
    NamedArray images = read(path, name, [&] { return hdf5::read_array(file, name); });
    auto* pixels = std::get_if<std::vector<std::uint8_t>>(&images.values);
    if (pixels == nullptr) {
        refuse_images(" and elements that are no bytes");
    }
    set.pixels = std::move(*pixels);
    if (first) {
        put_channels_last(set);
    }
    return set;
}

hdf5::Hid open_existing(const fs::path& path) {
    if (!fs::is_regular_file(path)) {
        refuse(path, fmt::format("{}; {}", fs::exists(path) ? "is no file" : "there is no such file", expected));
    }
    return open(path);
}

}  // namespace

Sets read_hdf5(const fs::path& path, Axes axes) {
    const hdf5::Hid file = open_existing(path);
    Dataset training = read_set(path, file.get(), "training", axes);
    return {std::move(training), read_set(path, file.get(), "test", axes)};
}

Dataset read_hdf5_test(const fs::path& path, Axes axes) {
    const hdf5::Hid file = open_existing(path);
    return read_set(path, file.get(), "test", axes);
}

}  // namespace finch::data
