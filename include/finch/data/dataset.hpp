#pragma once

#include "finch/pixels/store.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace finch::data {

/// Elements that this object owns, or a view of some that others keep.
template <class T>
class Elements {
public:
    Elements() = default;
    Elements(std::vector<T> values) : own_(std::move(values)) {}
    /// A view of `elsewhere`, which must outlive this object and its copies.
    explicit Elements(std::span<const T> elsewhere) : elsewhere_(elsewhere) {}

    [[nodiscard]] const T* data() const noexcept { return values().data(); }
    [[nodiscard]] std::size_t size() const noexcept { return values().size(); }
    [[nodiscard]] bool empty() const noexcept { return values().empty(); }
    [[nodiscard]] const T& operator[](std::size_t at) const noexcept { return values()[at]; }
    [[nodiscard]] auto begin() const noexcept { return values().begin(); }
    [[nodiscard]] auto end() const noexcept { return values().end(); }
    /// The elements that this object owns, to be filled.
    [[nodiscard]] std::vector<T>& own() noexcept { return own_; }
    [[nodiscard]] bool operator==(const Elements& other) const {
        return std::equal(begin(), end(), other.begin(), other.end());
    }

private:
    [[nodiscard]] std::span<const T> values() const noexcept {
        return elsewhere_.data() == nullptr ? std::span<const T>(own_) : elsewhere_;
    }

    std::vector<T> own_;
    std::span<const T> elsewhere_;
};

/// Images with what is to be learnt of each: its class, or some numbers.
struct Dataset {
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t channels = 0;
    std::int64_t classes = 0;         ///< 0: there are targets
    std::int64_t target_size = 0;     ///< numbers of a target
    bool float_pixels = false;        ///< a pixel is a float, otherwise a byte
    Elements<std::uint8_t> pixels{};  ///< (samples, height, width, channels), as bytes; empty if they are streamed
    std::shared_ptr<finch::pixels::Store> store{};  ///< that they are streamed from; null: they are in memory
    Elements<std::int32_t> labels{};                ///< (samples), each in [0, classes)
    Elements<float> targets{};                      ///< (samples, target_size)
    /// End of the samples of each system, in order; empty: there are no systems. Own validation samples follow.
    Elements<std::int64_t> system_ends{};
    /// (channels) of the pixels that train, where Options say `auto` (data/normalisation.hpp); else empty.
    Elements<double> measured_mean{};
    Elements<double> measured_deviation{};
    /// Samples that the user set apart to validate on, ascending; empty: split() draws them.
    Elements<std::int64_t> validation{};
    std::vector<std::string> class_names{};  ///< by label, each printable in one line; empty: the data have none

    [[nodiscard]] std::int64_t samples() const noexcept {
        return static_cast<std::int64_t>(targets.empty() ? labels.size()
                                                         : targets.size() / static_cast<std::size_t>(target_size));
    }
    [[nodiscard]] std::int64_t pixels_per_image() const noexcept { return height * width * channels; }
    [[nodiscard]] std::int64_t bytes_per_image() const noexcept {
        return pixels_per_image() * (float_pixels ? static_cast<std::int64_t>(sizeof(float)) : 1);
    }
    [[nodiscard]] finch::pixels::ImageSize image_size() const noexcept {
        return {pixels_per_image(), float_pixels ? static_cast<std::int64_t>(sizeof(float)) : 1};
    }
    /// Numbers that a model is to give for an image.
    [[nodiscard]] std::int64_t outputs() const noexcept { return targets.empty() ? classes : target_size; }
};

/// The options of `data:`, with genes replaced by their values.
enum class Kind { idx, cifar, hdf5, generated };
constexpr std::array<std::string_view, 4> words_of(Kind) {
    return {"idx", "cifar", "hdf5", "generated"};
}
/// The order of the axes of `hdf5` images; automatic: their attribute `axes` says it, or the only axis of 1 to 4.
enum class Axes { automatic, nhwc, nchw };
constexpr std::array<std::string_view, 3> words_of(Axes) {
    return {"auto", "NHWC", "NCHW"};
}
/// Place of the pixels of files during a run: in the memory of each node, or on the disk.
enum class Memory { whole, streamed };
constexpr std::array<std::string_view, 2> words_of(Memory) {
    return {"whole", "streamed"};
}
/// Target of an image: its class, or numbers.
enum class TargetKind { label, target };
/// Distortions of training images; each image has others in each epoch (backend/distortion.hpp).
struct Augmentation {
    std::int64_t shift = 0;   ///< pixels, at most, up or down, left or right
    bool mirror = false;      ///< half of them left to right
    std::int64_t cutout = 0;  ///< side of a square that is cut out; 0: none
    double rotation = 0;      ///< degrees, at most, either way
    bool operator==(const Augmentation&) const = default;
};
/// The samples that validate. Sampled: so many as Options::validation_samples, split off the training set by the seed.
struct SampledValidation {
    bool operator==(const SampledValidation&) const = default;
};
/// A set of their own, beside the training set; with a path: the training set of other data of the same kind.
struct OwnValidation {
    std::string path{};
    bool operator==(const OwnValidation&) const = default;
};
/// `hdf5`: those of the training set whose number in training/NAME is one of `values`.
struct ColumnValidation {
    std::string name{};
    std::vector<std::int64_t> values{};
    bool operator==(const ColumnValidation&) const = default;
};
using Validation = std::variant<SampledValidation, OwnValidation, ColumnValidation>;
/// One of several sets that are trained on together.
struct System {
    std::string path{};
    std::optional<double> weight{};  ///< of its share of each epoch; all systems have one or none has: by size
    bool operator==(const System&) const = default;
};
/// Expected properties of a training set, for a plan before it exists.
struct Expected {
    std::vector<std::int64_t> shape{};         ///< height, width, channels
    std::optional<std::int64_t> classes{};     ///< this or `targets`
    std::optional<std::int64_t> targets{};     ///< numbers of each target
    std::int64_t samples = 0;                  ///< with those that validate
    std::optional<std::int64_t> validation{};  ///< of them that the user set apart
    std::optional<std::int64_t> test{};        ///< samples of the test set
    bool operator==(const Expected&) const = default;
};
struct Options {
    Kind kind = Kind::generated;
    std::string path{};             ///< a folder; for hdf5 a file; `generated` needs none
    std::vector<System> systems{};  ///< in place of the path
    Axes axes = Axes::automatic;
    TargetKind answer = TargetKind::label;
    Memory memory = Memory::whole;
    pixels::Prefetch prefetch{};       ///< of streamed pixels
    std::vector<double> mean{0};       ///< of bytes after division by 255; one, or one per channel; empty: auto
    std::vector<double> deviation{1};  ///< positive; empty: auto
    Augmentation augmentation{};
    std::optional<std::int64_t> training_samples{};  ///< nothing: all
    std::optional<Expected> expect{};
    Validation validation{};
    std::int64_t validation_samples = 0;     ///< of SampledValidation
    std::int64_t generated_samples = 12000;  ///< `generated`: size of the training set; the test set has a sixth of it
    std::int64_t generated_size = 28;        ///< `generated`: height and width
    bool operator==(const Options&) const = default;
};

/// The systems' paths, or the one path.
[[nodiscard]] std::vector<std::string> paths_of(const Options& options);
/// The same, for messages.
[[nodiscard]] std::string places_text(const Options& options);
[[nodiscard]] bool is_weighted(const Options& options);

struct Datasets {
    Dataset training;         ///< with those that validate; split() says which
    Dataset test;             ///< may be empty
    std::string fingerprint;  ///< CRC-32C of all of it: a resumed run must see the same data
};

/// Reads or generates both sets. Throws ConfigError that names the path, what was expected there and how to get it, and
/// StorageError if streamed pixels cannot be read. `seed` generates data, and chooses the training samples from which
/// `normalize: auto` takes mean and deviation.
[[nodiscard]] Datasets load(const Options& options, std::uint64_t seed);

/// The test set alone, which must be there, with as many classes as its own labels have; `training` is empty. Throws as
/// load() does.
[[nodiscard]] Datasets load_test(const Options& options, std::uint64_t seed);

/// `to`, shaped as `from`, gets its samples behind its own, wherever the pixels of both are: in memory, or all
/// streamed. What validates in `from` does so in `to`.
void append(Dataset& to, const Dataset& from);

/// Calls visit(pixels) with the pixels of `samples` in their order, some whole images at a time, as they lie in
/// Dataset::pixels, in bounded memory. Throws StorageError if streamed ones cannot be read.
using VisitPixels = std::function<void(std::span<const std::uint8_t> pixels)>;
void visit_pixels(const Dataset& set, std::span<const std::int64_t> samples, const VisitPixels& visit);
/// Visits the pixels of all samples.
void visit_pixels(const Dataset& set, const VisitPixels& visit);

/// Bytes in which a training with batches of `batch` images on this rank reads ahead; 0 if the pixels are in memory.
[[nodiscard]] std::int64_t prefetch_bytes(const Options& options, const Dataset& set, std::int64_t batch);

/// A data set in one block of memory, which the ranks of a node can share: how many bytes it takes, writing it there,
/// and the view of it. `block` is aligned for std::int64_t and outlives the view. Streamed pixels stay where they are:
/// the view opens their files anew. Throws StorageError if they are not what they were.
[[nodiscard]] std::size_t block_bytes(const Dataset& set);
void write_block(const Dataset& set, std::span<std::byte> block);
[[nodiscard]] Dataset view_block(std::span<const std::byte> block);

/// The images that train and those that validate: disjoint, chosen by (seed) alone, or by the user. Throws ConfigError
/// if there are too few.
struct Split {
    std::vector<std::int64_t> training;
    std::vector<std::int64_t> validation;
};
[[nodiscard]] Split split(const Options& options, const Dataset& set, std::uint64_t seed);

/// The order in which epoch `epoch` (0 is the first) of an individual sees its `count` training samples: a permutation
/// that is a function of (seed, individual, epoch).
[[nodiscard]] std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t individual, std::int64_t epoch,
                                                     std::int64_t count);

/// The samples of the global batch [begin, end) that rank `rank` of `ranks` takes: contiguous shares of ceil((end −
/// begin) / ranks) at most. {first, last) positions; may be empty.
struct Share {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};
[[nodiscard]] Share share_of(std::int64_t begin, std::int64_t end, int rank, int ranks);

/// Writes generated data as IDX files (the usual MNIST names, gzipped) into `folder`.
void generate(const Options& options, std::uint64_t seed, const std::string& folder);

}  // namespace finch::data
