#pragma once

#include "finch/base/handle.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace finch::pixels {

class ReadThreads;

/// The size, modification time and inode of a file when it was opened. A different stamp means that the file was
/// changed.
struct Stamp {
    std::int64_t bytes = -1;  ///< −1: not known yet
    std::int64_t changed_seconds = 0;
    std::int64_t changed_nanoseconds = 0;
    std::uint64_t inode = 0;
    bool operator==(const Stamp&) const = default;
};

/// The place of some consecutive images in a file.
struct Place {
    std::int64_t offset = 0;  ///< of the first image, in bytes
    std::int64_t stride = 0;  ///< bytes from one image to the next
    std::int64_t images = 0;
    /// The number of planes of an image in the file. An image with several planes is stored as (C, H, W), and reading
    /// converts it to (H, W, C).
    std::int64_t planes = 1;
};

/// Consecutive images of one file, as a part of a store.
struct Piece {
    std::string path;
    Place place;
    Stamp stamp = {};
};

/// The size of each image of a store.
struct ImageSize {
    std::int64_t values = 0;       ///< H·W·C
    std::int64_t value_bytes = 1;  ///< per value: 1, or 4 for a float
    bool operator==(const ImageSize&) const = default;
};

/// The number of batches that a training reads ahead, and the number of reading threads of each rank.
struct Prefetch {
    std::int64_t threads = 2;
    std::int64_t batches = 4;  ///< of this rank
    bool operator==(const Prefetch&) const = default;
};

/// The reason why images could not be read. A failure is plain data: threads can return it without allocating memory.
struct Failure {
    enum class Kind { none, error, too_short, changed };
    Kind kind = Kind::none;
    int code = 0;  ///< errno, of an error
    std::size_t piece = 0;
    std::int64_t offset = 0;  ///< bytes
    [[nodiscard]] explicit operator bool() const noexcept { return kind != Kind::none; }
};

/// Images that stay in files, numbered across all pieces. The store reads them only with pread: a file that is
/// truncated, changed or no longer readable gives a Failure, never a signal. Any thread may call read().
class Store {
public:
    /// Opens all files and records the missing stamps. Throws StorageError if a file cannot be opened or does not match
    /// its stamp. Throws FileError if a file is too short for its images.
    Store(ImageSize size, std::vector<Piece> pieces);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    [[nodiscard]] ImageSize size() const noexcept { return size_; }
    [[nodiscard]] const std::vector<Piece>& pieces() const noexcept { return pieces_; }
    [[nodiscard]] std::int64_t images() const noexcept { return first_.back(); }
    /// Returns the file that contains the image with this number.
    [[nodiscard]] const std::string& file_of(std::int64_t image) const { return pieces_.at(piece_of(image)).path; }
    [[nodiscard]] std::size_t bytes_per_image() const noexcept {
        return static_cast<std::size_t>(size_.values * size_.value_bytes);
    }

    /// Reads the images with the numbers `images` into `to`, one after another, as (H, W, C). `scratch` has room for
    /// one image. Allocates no memory.
    [[nodiscard]] Failure read(std::span<const std::int64_t> images, std::span<std::uint8_t> to,
                               std::span<std::uint8_t> scratch) const noexcept;
    /// Reads images like the overload above, but allocates its own scratch memory. Throws StorageError if an image
    /// cannot be read.
    void read(std::span<const std::int64_t> images, std::span<std::uint8_t> to) const;
    /// Returns a message about the failure, with the file and the byte offset.
    [[nodiscard]] std::string text(const Failure& failure) const;

    /// Returns the threads that read this store's images. The first call makes `count` threads.
    [[nodiscard]] ReadThreads& threads(std::int64_t count);

private:
    [[nodiscard]] std::size_t piece_of(std::int64_t image) const noexcept;
    [[nodiscard]] Failure read_bytes(std::size_t piece, std::int64_t offset, std::span<std::uint8_t> to) const noexcept;
    [[nodiscard]] Failure check(std::size_t piece) const noexcept;

    ImageSize size_;
    std::vector<Piece> pieces_;
    std::vector<FileDescriptor> files_;  ///< for each piece
    std::vector<std::int64_t> first_;    ///< the number of the first image of each piece, then the number of all images
    std::unique_ptr<ReadThreads> threads_;
};

}  // namespace finch::pixels
