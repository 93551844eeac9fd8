#include "finch/base/format.hpp"

#include "readers.hpp"

#include <algorithm>
#include <array>
#include <fstream>

namespace finch::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* how_to_get_cifar =
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz unpacks to cifar-10-batches-bin, cifar-100-binary.tar.gz "
    "to "
    "cifar-100-binary";
constexpr std::int64_t side = 32;
constexpr std::int64_t planes = 3;
constexpr std::int64_t image_bytes = planes * side * side;  // the planes red, green, blue, row by row
constexpr std::int64_t records_at_once = 1024;

/// CIFAR-10 or CIFAR-100. A record has one or two labels, then the pixels. Finch uses the last label of a record.
struct Version {
    std::string name;
    std::string folder;  ///< in the archive
    std::int64_t labels = 1;
    std::int64_t classes = 10;
    std::string names;                                ///< the file with a class's name in each line
    std::array<std::vector<std::string>, 3> files{};  ///< by Part
    [[nodiscard]] std::int64_t record() const { return labels + image_bytes; }
};

const std::array<Version, 2>& versions() {
    static const std::array<Version, 2> both{
        Version{.name = "CIFAR-10",
                .folder = "cifar-10-batches-bin",
                .names = "batches.meta.txt",
                .files = {{{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                            "data_batch_5.bin"},
                           {"validation_batch.bin"},
                           {"test_batch.bin"}}}},
        Version{.name = "CIFAR-100",  // a coarse label, then the fine one
                .folder = "cifar-100-binary",
                .labels = 2,
                .classes = 100,
                .names = "fine_label_names.txt",
                .files = {{{"train.bin"}, {"validation.bin"}, {"test.bin"}}}}};
    return both;
}

/// A version, and the folder that has its files.
struct Found {
    const Version& version;
    fs::path folder;
};

/// Returns the first version that has any file in the folder, or CIFAR-10 if no file is found.
Found find_version(const fs::path& folder) {
    need_folder(folder, how_to_get_cifar);
    for (const Version& version : versions()) {
        const fs::path unpacked = folder / version.folder;
        fs::path place = fs::exists(unpacked) ? unpacked : folder;
        for (const auto& of_part : version.files) {
            if (std::any_of(of_part.begin(), of_part.end(),
                            [&](const std::string& file) { return fs::exists(place / file); })) {
                return {version, std::move(place)};
            }
        }
    }
    return {versions().front(), folder};
}

/// Returns the number of records in a file. Throws ConfigError if the file is empty or its last record is incomplete.
std::int64_t count_records(const fs::path& path, const Version& version, Memory memory) {
    if (!fs::exists(path)) {
        refuse(path,
               fmt::format("cannot be opened; expected the binary version of {}: {}", version.name, how_to_get_cifar));
    }
    const std::int64_t size = size_of(path, memory);
    if (size == 0 || size % version.record() != 0) {
        refuse(path, fmt::format("has {} bytes; expected a multiple of {} ({} label{} and {} x {} x {} pixels)", size,
                                 version.record(), version.labels, version.labels == 1 ? "" : "s", side, side, planes));
    }
    return size / version.record();
}

/// Adds record number `number` of the file to `set`.
void add_record(Dataset& set, const fs::path& path, const Version& version, std::int64_t number,
                const std::uint8_t* record, Memory memory) {
    const std::uint8_t* const image = record + version.labels;
    const std::uint8_t label = image[-1];
    if (label >= version.classes) {
        refuse(path, fmt::format("record {} has the label {}; expected 0 to {}", number, label, version.classes - 1));
    }
    set.labels.own().push_back(label);
    for (std::int64_t pixel = 0; memory == Memory::whole && pixel < side * side; ++pixel) {
        for (std::int64_t plane = 0; plane < planes; ++plane) {
            set.pixels.own().push_back(image[plane * side * side + pixel]);
        }
    }
}

void read_file(Dataset& set, const fs::path& path, const Version& version, Memory memory) {
    const std::int64_t records = count_records(path, version, memory);
    std::ifstream file(path, std::ios::binary);
    std::vector<std::uint8_t> bytes;
    for (std::int64_t begin = 0; begin < records; begin += records_at_once) {
        const std::int64_t count = std::min(records_at_once, records - begin);
        bytes.resize(static_cast<std::size_t>(count * version.record()));
        if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()))) {
            refuse(path, "cannot be read to its end");
        }
        for (std::int64_t i = 0; i < count; ++i) {
            add_record(set, path, version, begin + i, bytes.data() + i * version.record(), memory);
        }
    }
    if (memory == Memory::streamed) {
        stream(set, path, {.offset = version.labels, .stride = version.record(), .images = records, .planes = planes});
    }
}

/// Reads the class names. Returns none if the archive's file of names does not exist.
std::vector<std::string> read_names(const fs::path& folder, const Version& version) {
    const fs::path path = folder / version.names;
    std::ifstream file(path);
    std::vector<std::string> names;
    for (std::string line; std::getline(file, line);) {
        line.erase(line.find_last_not_of(" \r") + 1);
        if (!line.empty()) {
            names.push_back(std::move(line));
        }
    }
    if (!names.empty() && std::ssize(names) != version.classes) {
        refuse(path,
               fmt::format("has {} names of classes; expected {}, one in each line", names.size(), version.classes));
    }
    return class_names(std::move(names));
}

}  // namespace

std::optional<Dataset> read_cifar(const fs::path& folder, Memory memory, Part part) {
    const auto [version, place] = find_version(folder);
    const std::vector<std::string>& files = version.files[static_cast<std::size_t>(part)];
    if (part != Part::training && !fs::exists(place / files.front())) {
        return std::nullopt;
    }
    Dataset set{.height = side, .width = side, .channels = planes};
    for (const std::string& file : files) {
        read_file(set, place / file, version, memory);
    }
    set.class_names = read_names(place, version);
    return set;
}

}  // namespace finch::data
