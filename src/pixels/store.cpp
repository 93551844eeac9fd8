#include "finch/pixels/store.hpp"

#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/pixels/loader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace finch::pixels {
namespace {

Stamp stamp_of(const struct stat& about) noexcept {
    return {.bytes = about.st_size,
            .changed_seconds = about.st_mtim.tv_sec,
            .changed_nanoseconds = about.st_mtim.tv_nsec,
            .inode = about.st_ino};
}

/// Converts an image from (C, H, W) to (H, W, C).
template <class Value>
void put_channels_last(std::span<const std::uint8_t> image, std::int64_t planes, std::uint8_t* to) noexcept {
    const auto channels = static_cast<std::size_t>(planes);
    const std::size_t plane = image.size() / sizeof(Value) / channels;
    for (std::size_t pixel = 0; pixel < plane; ++pixel) {
        for (std::size_t channel = 0; channel < channels; ++channel) {
            std::memcpy(to, image.data() + (channel * plane + pixel) * sizeof(Value), sizeof(Value));
            to += sizeof(Value);
        }
    }
}

constexpr const char* resumed = "start the run again once the file is there as it was";

}  // namespace

Store::Store(ImageSize size, std::vector<Piece> pieces) : size_(size), pieces_(std::move(pieces)), first_{0} {
    for (Piece& piece : pieces_) {
        std::string problem;
        files_.push_back(open_regular(piece.path, O_RDONLY, problem));
        struct stat about {};
        if (!files_.back()) {
            throw StorageError(fmt::format("{}: cannot be opened: {}", piece.path, problem));
        }
        if (::fstat(files_.back().get(), &about) != 0) {
            throw_storage(piece.path);
        }
        piece.stamp = piece.stamp.bytes < 0 ? stamp_of(about) : piece.stamp;
        if (const Failure failure = check(files_.size() - 1)) {
            throw StorageError(text(failure));
        }
        const Place& place = piece.place;
        const std::int64_t needed = (place.images - 1) * place.stride + static_cast<std::int64_t>(bytes_per_image());
        const std::int64_t spare = piece.stamp.bytes - needed;
        if (place.images > 0 && (place.offset < 0 || spare < 0 || place.offset > spare)) {
            throw FileError(fmt::format("{}: has {} bytes; {} images from byte {} on need more", piece.path,
                                        piece.stamp.bytes, place.images, place.offset));
        }
        first_.push_back(first_.back() + place.images);
    }
}

Store::~Store() = default;

ReadThreads& Store::threads(std::int64_t count) {
    if (!threads_) {
        threads_ = std::make_unique<ReadThreads>(*this, count);
    }
    return *threads_;
}

std::size_t Store::piece_of(std::int64_t image) const noexcept {
    return static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), image) - first_.begin()) - 1;
}

Failure Store::read(std::span<const std::int64_t> images, std::span<std::uint8_t> to,
                    std::span<std::uint8_t> scratch) const noexcept {
    const std::size_t bytes = bytes_per_image();
    for (std::size_t i = 0; i < images.size();) {
        const std::size_t piece = piece_of(images[i]);
        const Place& place = pieces_[piece].place;
        const bool is_dense = place.planes == 1 && place.stride == static_cast<std::int64_t>(bytes);
        std::size_t run = 1;  // consecutive images in the file are read in one call
        while (is_dense && i + run < images.size() && images[i + run] == images[i + run - 1] + 1 &&
               images[i + run] < first_[piece + 1]) {
            ++run;
        }
        const std::span<std::uint8_t> out = to.subspan(i * bytes, run * bytes);
        const std::span<std::uint8_t> in = place.planes == 1 ? out : scratch.first(bytes);
        const std::int64_t offset = place.offset + (images[i] - first_[piece]) * place.stride;
        if (const Failure failure = read_bytes(piece, offset, in)) {
            return failure;
        }
        if (place.planes > 1 && size_.value_bytes == 1) {
            put_channels_last<std::uint8_t>(in, place.planes, out.data());
        } else if (place.planes > 1) {
            put_channels_last<float>(in, place.planes, out.data());
        }
        i += run;
        // The stamp is checked after reading, to detect a file that changed during the read.
        if (i == images.size() || piece_of(images[i]) != piece) {
            if (const Failure failure = check(piece)) {
                return failure;
            }
        }
    }
    return {};
}

void Store::read(std::span<const std::int64_t> images, std::span<std::uint8_t> to) const {
    std::vector<std::uint8_t> scratch(bytes_per_image());
    if (const Failure failure = read(images, to, scratch)) {
        throw StorageError(text(failure));
    }
}

Failure Store::read_bytes(std::size_t piece, std::int64_t offset, std::span<std::uint8_t> to) const noexcept {
    while (!to.empty()) {
        const ssize_t got = retry([&] { return ::pread(files_[piece].get(), to.data(), to.size(), offset); });
        if (got < 0) {
            return {Failure::Kind::error, errno, piece, offset};
        }
        if (got == 0) {
            return {Failure::Kind::too_short, 0, piece, offset};
        }
        to = to.subspan(static_cast<std::size_t>(got));
        offset += got;
    }
    return {};
}

Failure Store::check(std::size_t piece) const noexcept {
    struct stat about {};
    if (retry([&] { return ::fstat(files_[piece].get(), &about); }) != 0) {
        return {Failure::Kind::error, errno, piece, 0};
    }
    return stamp_of(about) == pieces_[piece].stamp ? Failure{} : Failure{Failure::Kind::changed, 0, piece, 0};
}

std::string Store::text(const Failure& failure) const {
    const Piece& piece = pieces_.at(failure.piece);
    switch (failure.kind) {
        case Failure::Kind::error:
            return fmt::format("{}: cannot be read at byte {}: {}", piece.path, failure.offset,
                               std::strerror(failure.code));
        case Failure::Kind::too_short:
            return fmt::format(
                "{}: ends before byte {}, where there are images: it was cut short while it was in use; {}", piece.path,
                failure.offset, resumed);
        case Failure::Kind::changed:
            return fmt::format("{}: was changed while it was in use; {}", piece.path, resumed);
        case Failure::Kind::none:
            break;
    }
    return "";
}

}  // namespace finch::pixels
