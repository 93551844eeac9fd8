#pragma once

#include "finch/data/dataset.hpp"

#include <filesystem>
#include <string>

namespace finch::data {

/// A training and a test set as they lie on disk. `classes` is not yet known: the labels say it together.
struct Sets {
    Dataset training;
    Dataset test;
};

/// Reads the four IDX files in `folder` (LeCun, Cortes, Burges: the MNIST database), plain or gzipped.
[[nodiscard]] Sets read_idx(const std::filesystem::path& folder);
[[nodiscard]] Dataset read_idx_test(const std::filesystem::path& folder);

/// Reads CIFAR-10's binary version in `folder` (Krizhevsky: the CIFAR-10 dataset).
[[nodiscard]] Sets read_cifar(const std::filesystem::path& folder);
[[nodiscard]] Dataset read_cifar_test(const std::filesystem::path& folder);

/// Reads the datasets training/images, training/labels, test/images and test/labels of one HDF5 file.
/// Images of (N, C, H, W) are put into Finch's order; `axes` or their attribute says so.
[[nodiscard]] Sets read_hdf5(const std::filesystem::path& file, Axes axes);
[[nodiscard]] Dataset read_hdf5_test(const std::filesystem::path& file, Axes axes);

/// Draws `options.generated_samples` training images and a sixth of that number of test images.
[[nodiscard]] Sets generate_sets(const Options& options, std::uint64_t seed);
[[nodiscard]] Dataset generate_test(const Options& options, std::uint64_t seed);

/// Writes `images` (samples, height, width[, channels]) and labels as two gzipped IDX files. Throws ApiError.
void write_idx(const Dataset& set, const std::filesystem::path& images, const std::filesystem::path& labels);

/// Throws ConfigError "FILE: what is wrong".
[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what);

/// The size of a file. Throws ConfigError where it is none (a folder, a pipe, a device), or larger than the memory of
/// this machine.
[[nodiscard]] std::int64_t size_of(const std::filesystem::path& file);

/// Throws ConfigError where so many bytes from `file` are more than the memory of this machine.
void need_memory(const std::filesystem::path& file, std::int64_t bytes);

/// Throws ConfigError unless `folder` is a folder; `hint` says how to get the files.
void need_folder(const std::filesystem::path& folder, const std::string& hint);

}  // namespace finch::data
