#include "finch/base/bytes.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "readers.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <system_error>
#include <unistd.h>

namespace finch::data {
namespace {

namespace fs = std::filesystem;

void need_path(const Options& options) {
    if (options.kind != Kind::generated && options.path.empty()) {
        throw ConfigError("data.path: is missing; every kind of data but `generated` is read from files");
    }
}

Sets read_sets(const Options& options, std::uint64_t seed) {
    need_path(options);
    switch (options.kind) {
        case Kind::idx:
            return read_idx(options.path);
        case Kind::cifar:
            return read_cifar(options.path);
        case Kind::hdf5:
            return read_hdf5(options.path, options.axes);
        case Kind::generated:
            break;
    }
    return generate_sets(options, seed);
}

Dataset read_test(const Options& options, std::uint64_t seed) {
    need_path(options);
    switch (options.kind) {
        case Kind::idx:
            return read_idx_test(options.path);
        case Kind::cifar:
            return read_cifar_test(options.path);
        case Kind::hdf5:
            return read_hdf5_test(options.path, options.axes);
        case Kind::generated:
            break;
    }
    return generate_test(options, seed);
}

std::string shape_text(const Dataset& set) {
    return fmt::format("{} x {} x {}", set.height, set.width, set.channels);
}

/// One number of classes for both sets: the largest label says it.
void count_classes(Sets& sets) {
    std::int32_t largest = 0;
    for (const Dataset* set : {&sets.training, &sets.test}) {
        largest = std::max(largest, *std::max_element(set->labels.begin(), set->labels.end()));
    }
    sets.training.classes = std::int64_t{largest} + 1;
    sets.test.classes = sets.training.classes;
}

void check(const Options& options, const Sets& sets) {
    if (shape_text(sets.training) != shape_text(sets.test)) {
        refuse(options.path, fmt::format("training images are {}, test images {}; expected one shape",
                                         shape_text(sets.training), shape_text(sets.test)));
    }
    if (sets.training.classes < 2) {
        refuse(options.path, "all labels are 0; expected at least two classes");
    }
    if (sets.training.samples() > std::numeric_limits<std::uint32_t>::max()) {
        refuse(options.path, "has more than 4 294 967 295 training images");
    }
    const auto check_channels = [&](const std::vector<double>& values, const char* key) {
        if (values.size() != 1 && static_cast<std::int64_t>(values.size()) != sets.training.channels) {
            throw ConfigError(
                fmt::format("data.normalize.{}: has {} values, but the images have {} channels; expected "
                            "one value, or one per channel",
                            key, values.size(), sets.training.channels));
        }
    };
    check_channels(options.mean, "mean");
    check_channels(options.deviation, "deviation");
}

std::string fingerprint(const Sets& sets) {
    std::uint32_t crc = 0;
    for (const Dataset* set : {&sets.training, &sets.test}) {
        const std::array<std::int64_t, 4> shape{set->samples(), set->height, set->width, set->channels};
        crc = crc32c(std::as_bytes(std::span(shape)), crc);
        crc = crc32c(std::as_bytes(std::span(set->pixels)), crc);
        crc = crc32c(std::as_bytes(std::span(set->labels)), crc);
    }
    return fmt::format("{:08x}", crc);
}

}  // namespace

void refuse(const fs::path& file, const std::string& what) {
    throw ConfigError(fmt::format("{}: {}", file.string(), what));
}

std::int64_t size_of(const fs::path& file) {
    std::error_code failure;
    const bool regular = fs::is_regular_file(file, failure);
    const auto bytes = regular ? fs::file_size(file, failure) : 0;
    if (!regular || failure) {
        refuse(file, fmt::format("cannot be read{}", failure ? " (" + failure.message() + ")" : ": it is no file"));
    }
    need_memory(file, static_cast<std::int64_t>(bytes));
    return static_cast<std::int64_t>(bytes);
}

void need_memory(const fs::path& file, std::int64_t bytes) {
    const std::int64_t memory = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
    if (memory > 0 && bytes > memory) {
        refuse(file,
               fmt::format("holds {} bytes of data, more than the {} bytes of this machine's memory", bytes, memory));
    }
}

void need_folder(const fs::path& folder, const std::string& hint) {
    if (!fs::is_directory(folder)) {
        refuse(folder, fmt::format("{}; {}", fs::exists(folder) ? "is no folder" : "there is no such folder", hint));
    }
}

Datasets load(const Options& options, std::uint64_t seed) try {
    Sets sets = read_sets(options, seed);
    count_classes(sets);
    check(options, sets);
    std::string mark = fingerprint(sets);
    return {std::move(sets.training), std::move(sets.test), std::move(mark)};
} catch (const std::bad_alloc&) {
    refuse(options.path, "there is not enough memory for its images");
}

Datasets load_test(const Options& options, std::uint64_t seed) try {
    Sets sets{.training = {}, .test = read_test(options, seed)};
    sets.test.classes = std::int64_t{*std::max_element(sets.test.labels.begin(), sets.test.labels.end())} + 1;
    std::string mark = fingerprint(sets);
    return {{}, std::move(sets.test), std::move(mark)};
} catch (const std::bad_alloc&) {
    refuse(options.path, "there is not enough memory for its images");
}

void generate(const Options& options, std::uint64_t seed, const std::string& folder) {
    const Sets sets = generate_sets(options, seed);
    const fs::path place(folder);
    fs::create_directories(place);
    write_idx(sets.training, place / "train-images-idx3-ubyte.gz", place / "train-labels-idx1-ubyte.gz");
    write_idx(sets.test, place / "t10k-images-idx3-ubyte.gz", place / "t10k-labels-idx1-ubyte.gz");
}

}  // namespace finch::data
