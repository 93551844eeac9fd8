#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/cluster/machine.hpp"
#include "finch/data/normalisation.hpp"

#include "readers.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <system_error>

namespace finch::data {
namespace {

namespace fs = std::filesystem;

void check_path(const Options& options) {
    if (options.kind == Kind::generated && !options.path.empty()) {
        throw ConfigError(fmt::format(
            "data.path: {} is not used, since data.kind is generated; accepted: kind: idx, cifar, hdf5 or folder, "
            "or no path",
            options.path));
    }
    if (options.kind != Kind::generated && options.path.empty() && options.systems.empty()) {
        throw ConfigError("data.path: is missing; every kind of data but `generated` is read from files");
    }
}

std::optional<Dataset> read_part(const Options& options, const std::string& path, Part part) {
    switch (options.kind) {
        case Kind::idx:
            return read_idx(path, options.memory, part);
        case Kind::cifar:
            return read_cifar(path, options.memory, part);
        case Kind::hdf5:
            return read_hdf5(path, options, part);
        case Kind::folder:
            return read_folder(path, options, part);
        case Kind::generated:
            break;
    }
    return std::nullopt;
}

std::optional<Dataset> read_all(const Options& options, Part part) {
    return join_systems(options, [&](const std::string& path) { return read_part(options, path, part); });
}

Dataset read_test(const Options& options, std::uint64_t seed) {
    check_path(options);
    if (options.kind == Kind::generated) {
        return generate_test(options, seed);
    }
    auto test = read_all(options, Part::test);
    if (!test) {
        refuse(places_text(options),
               options.kind == Kind::folder ? "has no test set; expected test/CLASS with images" : "has no test set");
    }
    return *std::move(test);
}

/// Throws ConfigError unless `set`, read from `path`, has the shape of the training set. `what` is the set's name in
/// the message.
void check_shape(const std::string& path, const Dataset& training, const Dataset& set, const char* what) {
    if (set.samples() > 0 && shape_text(training) != shape_text(set)) {
        refuse(path, fmt::format("training images are {}, {} images {}; expected the same of both",
                                 shape_text(training), what, shape_text(set)));
    }
}

/// Calls `reading` and returns its result. Puts the configuration key `key` in front of the text of a ConfigError.
template <class Reading>
auto with_key(const std::string& key, Reading reading) {
    try {
        return reading();
    } catch (const ConfigError& error) {
        throw ConfigError(key + error.what());
    }
}

/// Appends a separate validation set to the training set and marks its samples for validation.
void set_apart(const Options& options, const OwnValidation& own, Dataset& training) {
    const bool elsewhere = !own.path.empty();
    const std::string key = elsewhere ? "data.validation.own.path: " : "data.validation: own: ";
    for (const std::string& path : elsewhere ? std::vector{own.path} : paths_of(options)) {
        auto set =
            with_key(key, [&] { return read_part(options, path, elsewhere ? Part::training : Part::validation); });
        if (!set) {
            refuse(path,
                   "has no validation set (hdf5: the group validation; folder: the folder validation; idx: "
                   "validation-images-idx3-ubyte and validation-labels-idx1-ubyte; cifar: validation_batch.bin or "
                   "validation.bin), but data.validation is `own`");
        }
        check_shape(path, training, *set, "validation");
        join_class_names(training, places_text(options), *set, path);
        set->validation.own().resize(static_cast<std::size_t>(set->samples()));
        std::iota(set->validation.own().begin(), set->validation.own().end(), 0);
        append(training, *set);
    }
}

/// Returns the numbers in `column` for the samples of all systems.
std::vector<std::int64_t> read_column(const Options& options, const ColumnValidation& column, const Dataset& training) {
    if (options.systems.empty()) {
        return read_hdf5_column(options.path, column.name, training.samples());
    }
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < options.systems.size(); ++i) {
        const auto samples = training.system_ends[i] - static_cast<std::int64_t>(all.size());
        const auto numbers = read_hdf5_column(options.systems[i].path, column.name, samples);
        all.insert(all.end(), numbers.begin(), numbers.end());
    }
    return all;
}

/// Selects validation samples by a column of the HDF5 file and marks them.
void set_apart(const Options& options, const ColumnValidation& column, Dataset& training) {
    const auto numbers = with_key("data.validation.column: ", [&] { return read_column(options, column, training); });
    for (const std::int64_t value : column.values) {
        if (std::find(numbers.begin(), numbers.end(), value) == numbers.end()) {
            refuse(places_text(options),
                   fmt::format("training/{} is {} for no image; expected in data.validation.column.values "
                               "what some images have",
                               column.name, value));
        }
    }
    for (std::size_t sample = 0; sample < numbers.size(); ++sample) {
        if (std::find(column.values.begin(), column.values.end(), numbers[sample]) != column.values.end()) {
            training.validation.own().push_back(static_cast<std::int64_t>(sample));
        }
    }
}

void set_apart(const Options& /*options*/, const SampledValidation& /*by_split*/, Dataset& /*training*/) {}

Sets read_sets(const Options& options, std::uint64_t seed) {
    check_path(options);
    if (options.kind == Kind::generated) {
        if (options.memory == Memory::streamed) {
            throw ConfigError("data.memory: streamed is for data from files, and these are generated");
        }
        return generate_sets(options, seed);
    }
    Sets sets{.training = read_all(options, Part::training).value(),
              .test = read_all(options, Part::test).value_or(Dataset{})};
    check_shape(places_text(options), sets.training, sets.test, "test");
    std::visit([&](const auto& validation) { set_apart(options, validation, sets.training); }, options.validation);
    return sets;
}

/// Sets the number of classes of both sets: the largest label plus 1.
void count_classes(Sets& sets) {
    if (sets.test.labels.empty() && sets.training.labels.empty()) {
        return;
    }
    std::int32_t largest = 0;
    for (const Dataset* set : {&sets.training, &sets.test}) {
        for (const std::int32_t label : set->labels) {
            largest = std::max(largest, label);
        }
    }
    sets.training.classes = std::int64_t{largest} + 1;
    sets.test.classes = sets.training.classes;
}

void check_size(const Options& options, const Dataset& training) {
    if (training.outputs() < 2 && training.targets.empty()) {
        refuse(places_text(options), "all labels are 0; expected at least two classes");
    }
    if (training.samples() > std::numeric_limits<std::uint32_t>::max()) {
        refuse(places_text(options), "has more than 4 294 967 295 training images");
    }
}

void check_normalisation(const Options& options, const Dataset& training) {
    for (const double mean : options.mean) {
        if (!training.float_pixels && !(mean >= 0 && mean <= 1)) {
            throw ConfigError(fmt::format(
                "data.normalize.mean: is {}, but pixels are bytes, which are divided by 255 first; expected 0 to 1",
                mean));
        }
    }
    static_cast<void>(normalisation_of(options, training));  // throws if the values do not fit
}

/// Computes mean and deviation from the training pixels if they are `auto`, and stores them in both sets.
void measure_pixels(const Options& options, std::uint64_t seed, Sets& sets) {
    if (!needs_moments(options)) {
        return;
    }
    const Normalisation measured = moments(sets.training, split(options, sets.training, seed).training);
    for (Dataset* set : {&sets.training, &sets.test}) {
        set->measured_mean = measured.mean;
        set->measured_deviation = measured.deviation;
    }
}

[[noreturn]] void refuse_without_memory(const Options& options) {
    refuse(places_text(options), options.memory == Memory::streamed
                                     ? std::string("there is not enough memory for its labels")
                                     : fmt::format("there is not enough memory for its images; {}", leave_on_disk));
}

}  // namespace

void refuse(const fs::path& file, const std::string& what) {
    check_storage_of(file);
    const std::string link = dangling_link(file);
    throw ConfigError(fmt::format("{}: {}{}", file.string(), what, link.empty() ? "" : " (" + link + ")"));
}

void refuse_to_stream(const fs::path& file, const std::string& why, const std::string& remedy) {
    refuse(file, fmt::format("{}, so data.memory: streamed cannot read images from it one by one; {}, or write "
                             "data.memory: whole",
                             why, remedy));
}

void stream(Dataset& set, const fs::path& file, const pixels::Place& place) {
    std::vector<pixels::Piece> pieces = set.store ? set.store->pieces() : std::vector<pixels::Piece>();
    pieces.push_back({.path = file.string(), .place = place});
    try {
        set.store = std::make_shared<pixels::Store>(set.image_size(), std::move(pieces));
    } catch (const FileError& error) {
        throw ConfigError(error.what());
    }
}

std::int64_t size_of(const fs::path& file, Memory memory) {
    std::error_code failure;
    const bool regular = fs::is_regular_file(file, failure);
    const auto bytes = regular ? fs::file_size(file, failure) : 0;
    if (!regular || failure) {
        refuse(file, fmt::format("cannot be read{}", failure ? " (" + failure.message() + ")" : ": it is no file"));
    }
    if (memory == Memory::whole) {
        need_memory(file, static_cast<std::int64_t>(bytes));
    }
    return static_cast<std::int64_t>(bytes);
}

void need_memory(const fs::path& file, std::int64_t bytes) {
    const cluster::Machine machine = cluster::this_machine();
    const std::int64_t group = machine.memory_limit_bytes;
    const bool is_group = group > 0 && group < machine.memory_bytes;
    const std::int64_t memory = is_group ? group : machine.memory_bytes;
    if (memory > 0 && bytes > memory) {
        refuse(file, fmt::format("holds {} bytes of data, more than the {} bytes of memory that {}; {}", bytes, memory,
                                 is_group ? "this job's control group may take" : "this machine has", leave_on_disk));
    }
}

void need_folder(const fs::path& folder, const std::string& hint) {
    std::error_code failure;
    if (!fs::is_directory(folder, failure)) {
        refuse(folder, fmt::format("{}; {}", why_not("folder", folder, failure), hint));
    }
}

Datasets load(const Options& options, std::uint64_t seed) try {
    Sets sets = read_sets(options, seed);
    count_classes(sets);
    check_size(options, sets.training);
    check_class_names(options, sets);
    measure_pixels(options, seed, sets);
    check_normalisation(options, sets.training);
    std::string mark = fingerprint(sets);
    return {std::move(sets.training), std::move(sets.test), std::move(mark)};
} catch (const std::bad_alloc&) {
    refuse_without_memory(options);
}

Datasets load_test(const Options& options, std::uint64_t seed) try {
    Sets sets{.training = {}, .test = read_test(options, seed)};
    count_classes(sets);
    check_class_names(options, sets);
    std::string mark = fingerprint(sets);
    return {{}, std::move(sets.test), std::move(mark)};
} catch (const std::bad_alloc&) {
    refuse_without_memory(options);
}

void generate(const Options& options, std::uint64_t seed, const std::string& folder) {
    const Sets sets = generate_sets(options, seed);
    const fs::path place(folder);
    fs::create_directories(place);
    write_idx(sets.training, place / "train-images-idx3-ubyte.gz", place / "train-labels-idx1-ubyte.gz");
    write_idx(sets.test, place / "t10k-images-idx3-ubyte.gz", place / "t10k-labels-idx1-ubyte.gz");
}

}  // namespace finch::data
