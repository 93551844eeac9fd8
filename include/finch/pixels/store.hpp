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

/// A file as it was when it was opened: what other contents would not leave as they are.
struct Stamp {
    std::int64_t bytes = -1;  ///< −1: not known yet
    std::int64_t changed_seconds = 0;
    std::int64_t changed_nanoseconds = 0;
    std::uint64_t inode = 0;
    bool operator==(const Stamp&) const = default;
};

/// Place of some consecutive images in a file.
struct Place {
    std::int64_t offset = 0;  ///< bytes, of the first
    std::int64_t stride = 0;  ///< bytes from one to the next
    std::int64_t images = 0;
    /// Each image is so many planes, (C, H, W), of which a reader makes (H, W, C). 1: (H, W, C) as it lies there.
    std::int64_t planes = 1;
};

/// Images of one file.
struct Piece {
    std::string path;
    Place place;
    Stamp stamp = {};
};

/// Size of every image of a store.
struct ImageSize {
    std::int64_t values = 0;       ///< H·W·C
    std::int64_t value_bytes = 1;  ///< of a pixel of a channel: 1, or 4 of a float
    bool operator==(const ImageSize&) const = default;
};

/// How far ahead of a training its images are read, and by how many threads of each rank.
struct Prefetch {
    std::int64_t threads = 2;
    std::int64_t batches = 4;  ///< of this rank
    bool operator==(const Prefetch&) const = default;
};

/// Why images could not be read. Plain data, so that a thread can hand it on.
struct Failure {
    enum class Kind { none, error, too_short, changed };
    Kind kind = Kind::none;
    int code = 0;  ///< errno, of an error
    std::size_t piece = 0;
    std::int64_t offset = 0;  ///< bytes
    [[nodiscard]] explicit operator bool() const noexcept { return kind != Kind::none; }
};

/// Images that stay in files, numbered through all pieces, and read by pread alone: a file that is cut short, changed
/// or not readable any more is a Failure, never a signal. read() may be called by any thread.
class Store {
public:
    /// Opens all files. Notes the stamps that are not known yet. Throws StorageError if a file cannot be opened or
    /// is not what its stamp says, FileError if it cannot hold the images.
    Store(ImageSize size, std::vector<Piece> pieces);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    [[nodiscard]] ImageSize size() const noexcept { return size_; }
    [[nodiscard]] const std::vector<Piece>& pieces() const noexcept { return pieces_; }
    [[nodiscard]] std::int64_t images() const noexcept { return first_.back(); }
    /// The file of the image with this number.
    [[nodiscard]] const std::string& file_of(std::int64_t image) const { return pieces_.at(piece_of(image)).path; }
    [[nodiscard]] std::size_t bytes_per_image() const noexcept {
        return static_cast<std::size_t>(size_.values * size_.value_bytes);
    }

    /// Reads the images with the numbers `images` to `to`, one after another, as (H, W, C). `scratch` is for one image.
    /// Allocates nothing.
    [[nodiscard]] Failure read(std::span<const std::int64_t> images, std::span<std::uint8_t> to,
                               std::span<std::uint8_t> scratch) const noexcept;
    /// The same; throws what went wrong as a StorageError.
    void read(std::span<const std::int64_t> images, std::span<std::uint8_t> to) const;
    /// Names the file and the place in it.
    [[nodiscard]] std::string text(const Failure& failure) const;

    /// The threads that read this store's images, made at the first call.
    [[nodiscard]] ReadThreads& threads(std::int64_t count);

private:
    [[nodiscard]] std::size_t piece_of(std::int64_t image) const noexcept;
    [[nodiscard]] Failure read_bytes(std::size_t piece, std::int64_t offset, std::span<std::uint8_t> to) const noexcept;
    [[nodiscard]] Failure check(std::size_t piece) const noexcept;

    ImageSize size_;
    std::vector<Piece> pieces_;
    std::vector<FileDescriptor> files_;  ///< by piece
    std::vector<std::int64_t> first_;    ///< by piece, the number of its first image; then that of all images
    std::unique_ptr<ReadThreads> threads_;
};

}  // namespace finch::pixels
