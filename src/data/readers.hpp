#pragma once

#include "finch/data/dataset.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace finch::data {

inline constexpr double seconds_between_lines = 10;  ///< about the progress of reading

/// A training and a test set as read from disk. `classes` is not set yet: it follows from the labels of both sets.
struct Sets {
    Dataset training;
    Dataset test;  ///< may be empty
};

/// The data sets that files can contain. All readers return nothing if a validation or test set does not exist. A
/// training set must exist.
enum class Part { training, validation, test };
inline constexpr std::array<const char*, 3> part_names{"training", "validation", "test"};  ///< by Part

/// With Memory::streamed, all readers leave the pixels in the files and return a store of them. The readers throw
/// ConfigError if the layout of a file does not allow streaming; the message says how to change the file.
///
/// Reads a set from two IDX files in `folder` (LeCun, Cortes, Burges: the MNIST database), plain or gzipped: train-…,
/// validation-… or t10k-….
[[nodiscard]] std::optional<Dataset> read_idx(const std::filesystem::path& folder, Memory memory, Part part);

/// Reads CIFAR-10 or CIFAR-100 in `folder`, in the binary version (Krizhevsky: the CIFAR-10 dataset). The files of
/// CIFAR-10 are data_batch_1.bin to data_batch_5.bin, validation_batch.bin and test_batch.bin. The files of CIFAR-100
/// are train.bin, validation.bin and test.bin.
[[nodiscard]] std::optional<Dataset> read_cifar(const std::filesystem::path& folder, Memory memory, Part part);

/// Reads GROUP/images and GROUP/labels of an HDF5 file; GROUP is training, validation or test. Images of (N, C, H, W)
/// are converted to Finch's order, (N, H, W, C). `options` or the images' attribute `axes` gives the order in the file.
/// Options::answer tells if labels are classes or numbers.
[[nodiscard]] std::optional<Dataset> read_hdf5(const std::filesystem::path& file, const Options& options, Part part);
/// Reads the column training/NAME of an HDF5 file: one whole number for each of `samples`.
[[nodiscard]] std::vector<std::int64_t> read_hdf5_column(const std::filesystem::path& file, const std::string& name,
                                                         std::int64_t samples);

/// Reads PNG and JPEG images in folders of classes, with the rules of tools/images_to_hdf5.py: training/CLASS/…,
/// validation/CLASS/… and test/CLASS/…, or CLASS/… for a training set alone. Logs the number of skipped files.
[[nodiscard]] std::optional<Dataset> read_folder(const std::filesystem::path& folder, const Options& options,
                                                 Part part);
/// Reads the pixels of `files` into `set`, whose labels are set, on all CPUs of this rank. Logs the progress. Returns
/// images::Image::remark of each file, or throws one ConfigError about all refused files. `folder` is for messages.
[[nodiscard]] std::vector<std::string_view> read_image_files(const std::filesystem::path& folder,
                                                             const std::vector<std::filesystem::path>& files,
                                                             const Options& options, Dataset& set);

/// Describes images and targets: "28 x 28 x 1 bytes with targets of 3 numbers". Data sets can be joined only if their
/// texts are equal.
[[nodiscard]] std::string shape_text(const Dataset& set);
/// Joins the data sets that `read(path)` returns for all systems, or for the single path, and records where each system
/// ends. Returns nothing if no path has a data set. Throws ConfigError with the file's name if shapes differ.
using ReadSystem = std::function<std::optional<Dataset>(const std::string& path)>;
[[nodiscard]] std::optional<Dataset> join_systems(const Options& options, const ReadSystem& read);

/// Returns class names as they are shown: on one line, without control characters.
[[nodiscard]] std::vector<std::string> class_names(std::vector<std::string> names);
/// Sets the class names of `to` to those of `from` if `to` has none. Throws ConfigError if both sets have class names
/// and the names differ.
void join_class_names(Dataset& to, const std::string& to_path, const Dataset& from, const std::string& path);
/// Gives both sets the class names of the training set, or of the test set if there is no training set. Throws
/// ConfigError if the number of names does not fit the classes.
void check_class_names(const Options& options, Sets& sets);

/// Draws `options.generated_samples` training images and a sixth of that number of test images.
[[nodiscard]] Sets generate_sets(const Options& options, std::uint64_t seed);
[[nodiscard]] Dataset generate_test(const Options& options, std::uint64_t seed);

/// Writes the images (samples, height, width[, channels]) and the labels of `set` as two gzipped IDX files. Throws
/// ApiError.
void write_idx(const Dataset& set, const std::filesystem::path& images, const std::filesystem::path& labels);

/// Returns a CRC-32C of shapes, pixels and labels or targets. The checksum is the same for pixels in memory and on
/// disk. Reads streamed pixels once and logs the progress. Warns of test images with the pixels of a training image.
/// Throws StorageError, and ConfigError if a streamed float is not finite.
[[nodiscard]] std::string fingerprint(const Sets& sets);

/// Throws ConfigError with the text "FILE: WHAT".
[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what);

/// Returns the size of a file. Throws ConfigError if the path is not a regular file (a folder, a pipe, a device).
/// Unless the file is streamed, also throws ConfigError if the file does not fit into the memory.
[[nodiscard]] std::int64_t size_of(const std::filesystem::path& file, Memory memory = Memory::whole);

/// Throws ConfigError if `bytes` bytes from `file` exceed the memory of this machine or of this job's control group.
void need_memory(const std::filesystem::path& file, std::int64_t bytes);
/// The advice in messages about too little memory.
inline constexpr const char* leave_on_disk = "data.memory: streamed leaves the pixels on the disk";

/// Throws ConfigError. The message says why `file` cannot be streamed, and what to do (`remedy`).
[[noreturn]] void refuse_to_stream(const std::filesystem::path& file, const std::string& why,
                                   const std::string& remedy);

/// Adds the images at `place` in `file` to the store of `set`.
void stream(Dataset& set, const std::filesystem::path& file, const pixels::Place& place);

/// Throws ConfigError unless `folder` is a folder; `hint` says how to get the files.
void need_folder(const std::filesystem::path& folder, const std::string& hint);

}  // namespace finch::data
