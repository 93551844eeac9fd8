// Tests of streamed data sets: pixels that are read from files batch by batch must equal the pixels of a set in memory.
#include "finch/base/files.hpp"
#include "finch/hdf5/file.hpp"

#include "files.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <numeric>
#include <utility>

namespace {

using namespace finch;
using namespace finch::test;
namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

Bytes some_bytes(std::size_t count) {
    Bytes bytes;
    for (std::size_t i = 0; i < count; ++i) {
        bytes.push_back(static_cast<std::uint8_t>((i * 37 + i / 11) % 256));
    }
    return bytes;
}

Bytes idx_file(const std::vector<std::uint8_t>& sizes, const Bytes& elements) {
    Bytes bytes{0, 0, 8, static_cast<std::uint8_t>(sizes.size())};
    for (const std::uint8_t size : sizes) {
        bytes.insert(bytes.end(), {0, 0, 0, size});
    }
    bytes.insert(bytes.end(), elements.begin(), elements.end());
    return bytes;
}

data::Options options_of(data::Kind kind, const fs::path& path, data::Memory memory = data::Memory::streamed) {
    return {.kind = kind, .path = path.string(), .memory = memory};
}

Bytes visited(const data::Dataset& set) {
    Bytes bytes;
    data::visit_pixels(
        set, [&](std::span<const std::uint8_t> some) { bytes.insert(bytes.end(), some.begin(), some.end()); });
    return bytes;
}

/// Loads `options` into memory and as streamed data, and compares the two.
void check_same(data::Options options) {
    options.memory = data::Memory::whole;
    const data::Datasets whole = data::load(options, 1);
    options.memory = data::Memory::streamed;
    const data::Datasets streamed = data::load(options, 1);

    CHECK(streamed.fingerprint == whole.fingerprint);
    const std::pair<const data::Dataset*, const data::Dataset*> pairs[] = {{&whole.training, &streamed.training},
                                                                           {&whole.test, &streamed.test}};
    for (const auto& [in_memory, in_files] : pairs) {
        CHECK(in_files->pixels.empty());
        CHECK((in_files->store != nullptr) == (in_memory->samples() > 0));
        CHECK(visited(*in_files) == Bytes(in_memory->pixels.begin(), in_memory->pixels.end()));
        CHECK(in_files->labels == in_memory->labels);
        CHECK(in_files->targets == in_memory->targets);
        CHECK(in_files->validation == in_memory->validation);
        CHECK(in_files->image_size() == in_memory->image_size());
        CHECK(in_files->height == in_memory->height);
        CHECK(in_files->channels == in_memory->channels);
        CHECK(in_files->classes == in_memory->classes);
    }
}

/// Returns the message of the ConfigError that load() throws, or an empty string.
std::string refusal(const data::Options& options) {
    try {
        (void)data::load(options, 1);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

void write_idx_pair(const fs::path& folder, const std::string& prefix, std::uint8_t count) {
    write_bytes(folder / (prefix + "-images-idx3-ubyte"), idx_file({count, 3, 2}, some_bytes(std::size_t{count} * 6)));
    Bytes labels = some_bytes(count);
    for (std::uint8_t& label : labels) {
        label %= 3;
    }
    write_bytes(folder / (prefix + "-labels-idx1-ubyte"), idx_file({count}, labels));
}

struct Stored {
    hid_t type = H5T_STD_U8LE;
    bool in_chunks = false;
    hsize_t user_block = 0;
};

/// Writes a training set and a test set: images of `shape`, stored as `how` says, and labels. `changed` replaces the
/// last pixel values.
void write_hdf5(const fs::path& path, const std::vector<hsize_t>& shape, const Stored& how = {},
                const std::vector<double>& changed = {}) {
    const hdf5::Hid creation(H5Pcreate(H5P_FILE_CREATE));
    H5Pset_userblock(creation.get(), how.user_block);
    const hdf5::Hid file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), H5P_DEFAULT));
    for (const char* group : {"training", "test"}) {
        const hdf5::Hid made(H5Gcreate2(file.get(), group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        const hdf5::Hid space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
        const hdf5::Hid properties(H5Pcreate(H5P_DATASET_CREATE));
        if (how.in_chunks) {
            std::vector<hsize_t> chunk = shape;
            chunk[0] = 1;
            H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
        }
        const hdf5::Hid images(
            H5Dcreate2(made.get(), "images", how.type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT));
        std::vector<double> values(
            static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), hsize_t{1}, std::multiplies<>())));
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = static_cast<double>((i * 37 + i / 11) % 251);
        }
        std::copy(changed.begin(), changed.end(), values.end() - std::ssize(changed));
        H5Dwrite(images.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
        std::vector<std::int64_t> labels;
        for (hsize_t i = 0; i < shape[0]; ++i) {
            labels.push_back(static_cast<std::int64_t>(i % 3));
        }
        hdf5::write_array(made.get(), {"labels", {static_cast<std::int64_t>(shape[0])}, labels});
    }
}

TEST_CASE("streamed IDX: same data and same checksum as in memory") {
    const TemporaryFolder folder;
    write_idx_pair(folder.path(), "train", 20);
    write_idx_pair(folder.path(), "t10k", 4);
    write_idx_pair(folder.path(), "validation", 7);

    check_same(options_of(data::Kind::idx, folder.path()));
    data::Options own = options_of(data::Kind::idx, folder.path());
    own.validation = data::OwnValidation{};
    check_same(own);  // the validation set is appended to the training set
}

TEST_CASE("streamed CIFAR: planes become channels") {
    const TemporaryFolder folder;
    for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                             "data_batch_5.bin", "test_batch.bin"}) {
        Bytes records = some_bytes(3 * 3073);
        for (std::size_t record = 0; record < 3; ++record) {
            records[record * 3073] = static_cast<std::uint8_t>((record + static_cast<std::size_t>(name[11])) % 10);
        }
        write_bytes(folder.path() / name, records);
    }

    check_same(options_of(data::Kind::cifar, folder.path()));
}

TEST_CASE("streamed HDF5: bytes and floats, channels last or first, with and without a user block") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "some.h5";
    const auto check_file = [&](const std::vector<hsize_t>& shape, const Stored& how) {
        write_hdf5(path, shape, how);
        check_same(options_of(data::Kind::hdf5, path));
    };

    check_file({9, 4, 5}, {});
    check_file({9, 8, 5, 3}, {});
    check_file({9, 3, 8, 5}, {.user_block = 1024});
    check_file({9, 8, 5, 3}, {.type = H5T_IEEE_F32LE});
    check_file({9, 3, 8, 5}, {.type = H5T_IEEE_F32LE, .user_block = 512});
}

TEST_CASE("data that cannot be streamed is rejected; the message says what to do") {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "some.h5";
    const data::Options hdf5_options = options_of(data::Kind::hdf5, path);

    SUBCASE("chunks") {
        write_hdf5(path, {9, 4, 5}, {.in_chunks = true});
        const std::string said = refusal(hdf5_options);
        CHECK(contains(said, path.string() + ": training/images is stored in chunks"));
        CHECK(contains(said, "h5repack -l CONTI -f NONE " + path.string() + " NEW"));
    }
    SUBCASE("numbers that are neither uint8 nor little-endian float32") {
        for (const hid_t type : {H5T_IEEE_F64LE, H5T_IEEE_F32BE}) {
            write_hdf5(path, {9, 4, 5}, {.type = type});
            CHECK(contains(refusal(hdf5_options), "neither uint8 nor little-endian float32"));
        }
    }
    SUBCASE("floats that are not finite") {
        write_hdf5(path, {9, 4, 5}, {.type = H5T_IEEE_F32LE}, {HUGE_VAL});
        CHECK(contains(refusal(hdf5_options), path.string() + ": an image holds inf"));
    }
    SUBCASE("floats that are not finite, in the second of two systems") {
        const fs::path other = folder.path() / "other.h5";
        write_hdf5(other, {9, 4, 5}, {.type = H5T_IEEE_F32LE});
        write_hdf5(path, {9, 4, 5}, {.type = H5T_IEEE_F32LE}, {HUGE_VAL});
        data::Options both = options_of(data::Kind::hdf5, "");
        both.systems = {{.path = other.string()}, {.path = path.string()}};
        CHECK(contains(refusal(both), path.string() + ": an image holds inf"));
    }
    SUBCASE("a gzipped file") {
        data::generate({.generated_samples = 30, .size = {9}}, 1, folder.path().string());
        const std::string said = refusal(options_of(data::Kind::idx, folder.path()));
        CHECK(contains(said, "train-images-idx3-ubyte.gz: is gzipped"));
        CHECK(contains(said, "gunzip " + folder.path().string()));
    }
    SUBCASE("a file with less or more data than its header says") {
        write_idx_pair(folder.path(), "train", 20);
        fs::resize_file(folder.path() / "train-images-idx3-ubyte", 16 + 119);
        CHECK(contains(refusal(options_of(data::Kind::idx, folder.path())), "train-images-idx3-ubyte: "));
        fs::resize_file(folder.path() / "train-images-idx3-ubyte", 16 + 121);
        CHECK(contains(refusal(options_of(data::Kind::idx, folder.path())), "has 121 bytes behind its header"));
    }
    SUBCASE("generated data") {
        CHECK(contains(refusal({.memory = data::Memory::streamed}), "data.memory"));
    }
}

TEST_CASE("visit_pixels: returns the pixels in the order of the given samples, in memory or streamed") {
    const TemporaryFolder folder;
    write_idx_pair(folder.path(), "train", 20);
    const std::vector<std::int64_t> some{3, 4, 5, 19, 0, 0, 7};
    std::array<Bytes, 2> got;
    for (const data::Memory memory : {data::Memory::whole, data::Memory::streamed}) {
        const data::Datasets sets = data::load(options_of(data::Kind::idx, folder.path(), memory), 1);
        data::visit_pixels(sets.training, some, [&](std::span<const std::uint8_t> pixels) {
            Bytes& all = got.at(static_cast<std::size_t>(memory));
            all.insert(all.end(), pixels.begin(), pixels.end());
        });
    }

    const Bytes all = some_bytes(120);
    Bytes expected;
    for (const std::int64_t sample : some) {
        expected.insert(expected.end(), all.begin() + 6 * sample, all.begin() + 6 * sample + 6);
    }
    CHECK(got[0] == expected);
    CHECK(got[1] == expected);
}

TEST_CASE("append: both sets must be in memory, or both streamed, with images of the same shape") {
    const TemporaryFolder folder;
    write_idx_pair(folder.path(), "train", 5);
    data::Datasets whole = data::load(options_of(data::Kind::idx, folder.path(), data::Memory::whole), 1);
    data::Datasets streamed = data::load(options_of(data::Kind::idx, folder.path()), 1);
    const data::Dataset one = streamed.training;

    data::append(whole.training, data::Dataset(whole.training));
    data::append(streamed.training, one);

    CHECK(streamed.training.samples() == 10);
    CHECK(visited(streamed.training) == visited(whole.training));
    CHECK(one.store->images() == 5);
    CHECK_THROWS_AS(data::append(whole.training, one), Error);
}

TEST_CASE("view_block: the ranks of a node share the labels; each rank opens the files, which must be unchanged") {
    const TemporaryFolder folder;
    write_idx_pair(folder.path(), "train", 20);
    const data::Datasets sets = data::load(options_of(data::Kind::idx, folder.path()), 1);
    std::vector<std::int64_t> memory(data::block_bytes(sets.training) / 8 + 1);
    const auto block = std::as_writable_bytes(std::span(memory)).first(data::block_bytes(sets.training));
    data::write_block(sets.training, block);

    const data::Dataset view = data::view_block(block);
    CHECK(view.labels == sets.training.labels);
    CHECK(view.store != sets.training.store);
    CHECK(visited(view) == visited(sets.training));

    fs::last_write_time(folder.path() / "train-images-idx3-ubyte",
                        fs::file_time_type::clock::now() + std::chrono::seconds(5));
    CHECK_THROWS_WITH_AS((void)data::view_block(block), doctest::Contains("was changed"), StorageError);
}

TEST_CASE("prefetch_bytes: memory for a training loader and a validation loader; 0 if the pixels are in memory") {
    const TemporaryFolder folder;
    write_idx_pair(folder.path(), "train", 20);
    data::Options options = options_of(data::Kind::idx, folder.path());
    options.prefetch.batches = 3;

    CHECK(data::prefetch_bytes(options, data::load(options, 1).training, 32) == 2 * (3 + 1) * 32 * 6);
    options.memory = data::Memory::whole;
    CHECK(data::prefetch_bytes(options, data::load(options, 1).training, 32) == 0);
}

}  // namespace
