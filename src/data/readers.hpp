#pragma once

#include "finch/data/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace finch::data {

/// A training and a test set as they lie on disk. `classes` is not yet known: the labels say it together.
struct Sets {
    Dataset training;
    Dataset test;  ///< may be empty
};

/// What files can hold. All readers of files give nothing if there is no such set; a training set must be there.
enum class Part { training, validation, test };

/// With Memory::streamed all of them leave the pixels where they are, and give a store of them. Throw ConfigError if
/// the file is not laid out for that, with what would make it so.
///
/// Reads two of the IDX files in `folder` (LeCun, Cortes, Burges: the MNIST database), plain or gzipped: train-…,
/// validation-… or t10k-….
[[nodiscard]] std::optional<Dataset> read_idx(const std::filesystem::path& folder, Memory memory, Part part);

/// Reads the binary version of CIFAR-10 in `folder` (Krizhevsky: the CIFAR-10 dataset), data_batch_1.bin to
/// data_batch_5.bin, validation_batch.bin or test_batch.bin; or of CIFAR-100, train.bin, validation.bin or test.bin.
[[nodiscard]] std::optional<Dataset> read_cifar(const std::filesystem::path& folder, Memory memory, Part part);

/// Reads GROUP/images and GROUP/labels of an HDF5 file, of the group training, validation or test. Images of
/// (N, C, H, W) are put into Finch's order; `options` or their attribute says so. Labels are what Options::answer says.
[[nodiscard]] std::optional<Dataset> read_hdf5(const std::filesystem::path& file, const Options& options, Part part);
/// The whole numbers training/NAME, one for each of `samples`.
[[nodiscard]] std::vector<std::int64_t> read_hdf5_column(const std::filesystem::path& file, const std::string& name,
                                                         std::int64_t samples);

/// "28 x 28 x 1 bytes with targets of 3 numbers": what sets that are joined or compared have in common.
[[nodiscard]] std::string shape_text(const Dataset& set);
/// What `read(path)` reads of each system, or of the one path, one behind the other, with their ends. Nothing if
/// none has such a set. Throws ConfigError that names the file where shapes differ.
using ReadSystem = std::function<std::optional<Dataset>(const std::string& path)>;
[[nodiscard]] std::optional<Dataset> join_systems(const Options& options, const ReadSystem& read);

/// Names as they are shown: in one line, without control characters.
[[nodiscard]] std::vector<std::string> class_names(std::vector<std::string> names);
/// `to` gets the names of `from` if it has none. Throws ConfigError if both have some, and they differ.
void join_class_names(Dataset& to, const std::string& to_path, const Dataset& from, const std::string& path);
/// Both sets get the training set's names. Throws ConfigError if their number is not that of the classes.
void check_class_names(const Options& options, Sets& sets);

/// Draws `options.generated_samples` training images and a sixth of that number of test images.
[[nodiscard]] Sets generate_sets(const Options& options, std::uint64_t seed);
[[nodiscard]] Dataset generate_test(const Options& options, std::uint64_t seed);

/// Writes `images` (samples, height, width[, channels]) and labels as two gzipped IDX files. Throws ApiError.
void write_idx(const Dataset& set, const std::filesystem::path& images, const std::filesystem::path& labels);

/// CRC-32C of shapes, pixels and what is learnt of them, the same wherever the pixels are; it reads those that are
/// streamed once, and says how far it is. Throws StorageError, and ConfigError if floats among them are not finite.
[[nodiscard]] std::string fingerprint(const Sets& sets);

/// Throws ConfigError "FILE: what is wrong".
[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what);

/// The size of a file. Throws ConfigError if it is none (a folder, a pipe, a device), or, unless it is
/// streamed, larger than the memory there is.
[[nodiscard]] std::int64_t size_of(const std::filesystem::path& file, Memory memory = Memory::whole);

/// Throws ConfigError if so many bytes from `file` are more than this machine has, or this job may take of it.
void need_memory(const std::filesystem::path& file, std::int64_t bytes);
/// Said where memory is short.
inline constexpr const char* leave_on_disk = "data.memory: streamed leaves the pixels on the disk";

/// Throws ConfigError that says why `file` cannot be streamed, and what makes it so: `remedy`.
[[noreturn]] void refuse_to_stream(const std::filesystem::path& file, const std::string& why,
                                   const std::string& remedy);

/// The set of these pixels, whose samples are known.
void stream(Dataset& set, const std::filesystem::path& file, const pixels::Place& place);

/// Throws ConfigError unless `folder` is a folder; `hint` says how to get the files.
void need_folder(const std::filesystem::path& folder, const std::string& hint);

}  // namespace finch::data
