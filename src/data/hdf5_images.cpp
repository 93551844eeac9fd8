#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/hdf5/file.hpp"

#include "readers.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace finch::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* expected =
    "expected training/images, uint8 or floating-point, (N, H, W), (N, H, W, C) or (N, C, H, W), and training/labels, "
    "(N) whole numbers, or with training.loss other than cross_entropy (N) or (N, K) numbers, and the same of the "
    "groups "
    "test and validation, where these are there";
constexpr std::int64_t largest_label = 65535;
constexpr std::int64_t exact_double = std::int64_t{1} << 53;  // a double holds whole numbers exactly up to here
constexpr std::int64_t usual_channels = 4;  // an axis of at most this size may be the channels without an attribute

hdf5::Hid open(const fs::path& path) {
    std::error_code failure;
    if (!fs::is_regular_file(path, failure)) {
        refuse(path,
               fmt::format("{}{}; {}", why_not("file", path, failure),
                           failure ? "" : "; tools/images_to_hdf5.py makes one from folders of images", expected));
    }
    try {
        return hdf5::open_plain_file(path);
    } catch (const StorageError&) {
        throw;
    } catch (const Error& error) {
        refuse(path, fmt::format("cannot be opened as HDF5 ({}); {}", error.what(), expected));
    }
}

/// Calls `reading` and returns its result. Converts an error to a ConfigError that names the object `name`, since the
/// user supplied the file.
template <class Reading>
auto read(const fs::path& path, const std::string& name, Reading reading) {
    try {
        return reading();
    } catch (const Error& error) {
        refuse(path, fmt::format("{} cannot be read ({}); {}", name, error.what(), expected));
    }
}

/// Returns the elements of `array` as whole numbers. Throws ConfigError unless each is a whole number in [low, high].
template <class T>
std::vector<T> whole_numbers(const fs::path& path, const NamedArray& array, std::int64_t low, std::int64_t high) {
    std::vector<T> numbers;
    const auto take = [&](const auto& values) {
        for (const auto value : values) {
            const auto number = static_cast<double>(value);
            if (!(number >= static_cast<double>(low) && number <= static_cast<double>(high)) ||
                std::floor(number) != number) {
                refuse(path,
                       fmt::format("{} holds {}; expected whole numbers from {} to {}", array.name, value, low, high));
            }
            numbers.push_back(static_cast<T>(value));
        }
    };
    std::visit(take, array.values);
    return numbers;
}

using Shape = std::vector<std::int64_t>;

/// Returns the images' attribute `axes`; empty if there is none.
std::string told_axes(const fs::path& path, hid_t file, const std::string& name) {
    return read(path, name, [&] {
        const hdf5::Hid images(hdf5::check_reading(H5Oopen(file, name.c_str(), H5P_DEFAULT), name));
        return hdf5::has_attribute(images.get(), "axes") ? hdf5::read_text_attribute(images.get(), "axes") : "";
    });
}

/// True if images of four axes are (N, C, H, W). The configuration or the images' attribute `axes` gives the order of
/// the axes. If neither gives it, the channel axis is the only candidate with a usual number of channels.
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

/// Converts (N, C, H, W) to (N, H, W, C), one image at a time.
template <class Pixel>
void put_channels_last(std::vector<Pixel>& pixels, const Dataset& set) {
    const std::int64_t plane = set.height * set.width;
    std::vector<Pixel> image(static_cast<std::size_t>(set.pixels_per_image()));
    for (auto at = pixels.begin(); at != pixels.end(); at += set.pixels_per_image()) {
        std::copy_n(at, image.size(), image.begin());
        for (std::int64_t pixel = 0; pixel < plane; ++pixel) {
            for (std::int64_t channel = 0; channel < set.channels; ++channel) {
                at[pixel * set.channels + channel] = image[static_cast<std::size_t>(channel * plane + pixel)];
            }
        }
    }
}

/// Returns the elements of `array` as floats. Throws ConfigError unless all elements are finite.
std::vector<float> finite_floats(const fs::path& path, const NamedArray& array) {
    std::vector<float> floats;
    const auto take = [&](const auto& values) {
        floats.reserve(values.size());
        for (const auto value : values) {
            floats.push_back(static_cast<float>(value));
            if (!std::isfinite(floats.back())) {
                refuse(path, fmt::format("{} holds {}; expected numbers that a float of 32 bits can hold", array.name,
                                         value));
            }
        }
    };
    std::visit(take, array.values);
    return floats;
}

/// Reads the labels or targets. The labels are read before the images, since they are small and reveal a wrong file
/// early.
void read_answers(const fs::path& path, hid_t file, const std::string& name, std::int64_t images, TargetKind answer,
                  Dataset& set) {
    const Shape shape = read(path, name, [&] { return hdf5::read_shape(file, name); });
    const bool has_rows = answer == TargetKind::target && shape.size() == 2 && shape[1] > 0;
    if (shape.empty() || shape[0] != images || (shape.size() != 1 && !has_rows)) {
        refuse(path,
               fmt::format("{} has the shape ({}); expected ({}){}, one for each image", name, fmt::join(shape, ", "),
                           images, answer == TargetKind::target ? fmt::format(" or ({}, K)", images) : ""));
    }
    const NamedArray array = read(path, name, [&] { return hdf5::read_array(file, name); });
    if (answer == TargetKind::label) {
        set.labels = whole_numbers<std::int32_t>(path, array, 0, largest_label);
    } else {
        set.targets = finite_floats(path, array);
        set.target_size = has_rows ? shape[1] : 1;
    }
}

/// Returns the names in the file's attribute `classes`. If the attribute is not a list of strings, warns and returns no
/// names: another program wrote it.
std::vector<std::string> read_class_names(const fs::path& path, hid_t file, const std::string& group) {
    try {
        return class_names(hdf5::read_texts_attribute(file, "classes"));
    } catch (const FileError& error) {
        if (group == "training") {  // once for all sets
            spdlog::warn("{}: {}, so the classes have no names; expected a list of strings", path.string(),
                         error.what());
        }
        return {};
    }
}

void read_pixels(const fs::path& path, NamedArray images, bool channels_first, Dataset& set) {
    auto* const bytes = std::get_if<std::vector<std::uint8_t>>(&images.values);
    if (bytes != nullptr) {
        if (channels_first) {
            put_channels_last(*bytes, set);
        }
        set.pixels = std::move(*bytes);
        return;
    }
    if (std::holds_alternative<std::vector<std::int64_t>>(images.values)) {
        refuse(path, fmt::format("{} holds whole numbers that are no uint8; {}", images.name, expected));
    }
    std::vector<float> floats = finite_floats(path, images);
    images = {};
    if (channels_first) {
        put_channels_last(floats, set);
    }
    set.float_pixels = true;
    const auto raw = std::as_bytes(std::span(floats));
    const auto* const first = reinterpret_cast<const std::uint8_t*>(raw.data());
    set.pixels.own().assign(first, first + raw.size());
}

/// Leaves the pixels in the file and adds their place to the store of `set`.
void place_pixels(const fs::path& path, hid_t file, const std::string& name, std::int64_t count, bool channels_first,
                  Dataset& set) {
    const auto place = [&] {
        try {
            return hdf5::read_place(file, name);
        } catch (const FileError& error) {
            refuse_to_stream(path, error.what(),
                             fmt::format("lay it out anew (h5repack -l CONTI -f NONE {} NEW), with uint8 or float32",
                                         path.string()));
        }
    }();
    set.float_pixels = place.is_float;
    stream(set, path,
           {.offset = place.offset,
            .stride = set.bytes_per_image(),
            .images = count,
            .planes = channels_first ? set.channels : 1});
}

Dataset read_set(const fs::path& path, hid_t file, const std::string& group, const Options& options) {
    const std::string name = group + "/images";
    const Shape shape = read(path, name, [&] { return hdf5::read_shape(file, name); });
    if (shape.size() < 3 || shape.size() > 4 || std::find(shape.begin(), shape.end(), 0) != shape.end()) {
        refuse(path, fmt::format("{} has the shape ({}); {}", name, fmt::join(shape, ", "), expected));
    }
    Dataset set{.height = shape[1], .width = shape[2], .channels = shape.size() == 4 ? shape[3] : 1};
    const bool first =
        shape.size() == 4 && channels_come_first(path, name, shape, told_axes(path, file, name), options.axes);
    if (first) {
        set.channels = shape[1];
        set.height = shape[2];
        set.width = shape[3];
    }
    read_answers(path, file, group + "/labels", shape[0], options.answer, set);
    if (options.answer == TargetKind::label && hdf5::has_attribute(file, "classes")) {
        set.class_names = read_class_names(path, file, group);
    }
    if (options.memory == Memory::streamed) {
        place_pixels(path, file, name, shape[0], first, set);
    } else {
        need_memory(path, shape[0] * set.pixels_per_image());
        read_pixels(path, read(path, name, [&] { return hdf5::read_array(file, name); }), first, set);
    }
    return set;
}

}  // namespace

std::optional<Dataset> read_hdf5(const fs::path& path, const Options& options, Part part) {
    const hdf5::Hid file = open(path);
    const char* const group = part_names[static_cast<std::size_t>(part)];
    if (part != Part::training && !read(path, group, [&] { return hdf5::has_object(file.get(), group); })) {
        return std::nullopt;
    }
    return read_set(path, file.get(), group, options);
}

std::vector<std::int64_t> read_hdf5_column(const fs::path& path, const std::string& name, std::int64_t samples) {
    const hdf5::Hid file = open(path);
    const std::string whole = "training/" + name;
    const NamedArray array = read(path, whole, [&] { return hdf5::read_array(file.get(), whole); });
    if (array.shape != Shape{samples}) {
        refuse(path, fmt::format("{} has the shape ({}); expected ({}), a whole number for each image", whole,
                                 fmt::join(array.shape, ", "), samples));
    }
    return whole_numbers<std::int64_t>(path, array, -exact_double, exact_double);
}

}  // namespace finch::data
