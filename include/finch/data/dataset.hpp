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

/// A list of elements that this object owns, or a view of elements that another object owns.
template <class T>
class Elements {
public:
    Elements() = default;
    Elements(std::vector<T> values) : own_(std::move(values)) {}
    /// Makes a view of `elsewhere`, which must outlive this object and its copies.
    explicit Elements(std::span<const T> elsewhere) : elsewhere_(elsewhere) {}

    [[nodiscard]] const T* data() const noexcept { return values().data(); }
    [[nodiscard]] std::size_t size() const noexcept { return values().size(); }
    [[nodiscard]] bool empty() const noexcept { return values().empty(); }
    [[nodiscard]] const T& operator[](std::size_t at) const noexcept { return values()[at]; }
    [[nodiscard]] auto begin() const noexcept { return values().begin(); }
    [[nodiscard]] auto end() const noexcept { return values().end(); }
    /// Returns the elements that this object owns, for writing.
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

/// Images, and the target of each image: its class, or some numbers.
struct Dataset {
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t channels = 0;
    std::int64_t classes = 0;         ///< 0: the set has targets
    std::int64_t target_size = 0;     ///< numbers per target
    bool float_pixels = false;        ///< a pixel is a float, otherwise a byte
    Elements<std::uint8_t> pixels{};  ///< (samples, height, width, channels), as bytes; empty if they are streamed
    std::shared_ptr<finch::pixels::Store> store{};  ///< source of streamed pixels; null: they are in memory
    Elements<std::int32_t> labels{};                ///< (samples), each in [0, classes)
    Elements<float> targets{};                      ///< (samples, target_size)
    /// For each system (one of several data sets), the index behind its last sample; empty if there are no systems. The
    /// samples of a separate validation set come behind the samples of all systems.
    Elements<std::int64_t> system_ends{};
    /// Mean and deviation of each channel over the training pixels; empty unless Options say `auto`
    /// (data/normalisation.hpp).
    Elements<double> measured_mean{};
    Elements<double> measured_deviation{};
    /// Sorted indices of the samples that the user set apart for validation. If empty, split() draws validation
    /// samples.
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
    /// Returns the number of outputs that a model needs for an image.
    [[nodiscard]] std::int64_t outputs() const noexcept { return targets.empty() ? classes : target_size; }
};

/// The format of the data: key `kind` of the section `data`. In all options below, genes are already replaced by their
/// values.
enum class Kind { idx, cifar, hdf5, folder, generated };
constexpr std::array<std::string_view, 5> words_of(Kind) {
    return {"idx", "cifar", "hdf5", "folder", "generated"};
}
/// The order of the axes of `hdf5` images. For `automatic`, the images' attribute `axes` gives the order. Without the
/// attribute `axes`, the channel axis is the only candidate with a size of 1 to 4.
enum class Axes { automatic, nhwc, nchw };
constexpr std::array<std::string_view, 3> words_of(Axes) {
    return {"auto", "NHWC", "NCHW"};
}
/// The storage of the pixels of files during a run: in the memory of each node, or on disk.
enum class Memory { whole, streamed };
constexpr std::array<std::string_view, 2> words_of(Memory) {
    return {"whole", "streamed"};
}
/// The target of an image: its class, or numbers.
enum class TargetKind { label, target };
/// Distortions of training images. Each epoch distorts each image differently (backend/distortion.hpp).
struct Augmentation {
    std::int64_t shift = 0;   ///< pixels, at most, up or down, left or right
    bool mirror = false;      ///< half of them left to right
    std::int64_t cutout = 0;  ///< side of a square that is cut out; 0: none
    double rotation = 0;      ///< degrees, at most, either way
    bool operator==(const Augmentation&) const = default;
};
/// Validation with random samples of the training set. The seed selects Options::validation_samples samples.
struct SampledValidation {
    bool operator==(const SampledValidation&) const = default;
};
/// Validation with a separate data set. If `path` is set, the training set of the data at `path` is used.
struct OwnValidation {
    std::string path{};
    bool operator==(const OwnValidation&) const = default;
};
/// Validation with the training images of an `hdf5` file that have one of `values` in the column training/NAME.
struct ColumnValidation {
    std::string name{};
    std::vector<std::int64_t> values{};
    bool operator==(const ColumnValidation&) const = default;
};
using Validation = std::variant<SampledValidation, OwnValidation, ColumnValidation>;
/// One of several data sets that are combined for training.
struct System {
    std::string path{};
    std::optional<double> weight{};  ///< for its share of each epoch; all systems have a weight, or none has: by size
    bool operator==(const System&) const = default;
};
/// Consecutive systems [first, end) that share `weight` in proportion to their numbers of training images.
struct SystemBlock {
    std::int64_t first = 0;
    std::int64_t end = 0;
    double weight = 1;
    bool operator==(const SystemBlock&) const = default;
};
struct Options {
    Kind kind = Kind::generated;
    std::string path{};                        ///< a folder; for hdf5 a file; `generated` needs none
    std::vector<System> systems{};             ///< in place of the path
    std::vector<SystemBlock> system_blocks{};  ///< cover all systems in order; empty: no blocks, as System::weight says
    Axes axes = Axes::automatic;
    TargetKind answer = TargetKind::label;
    Memory memory = Memory::whole;
    pixels::Prefetch prefetch{};       ///< of streamed pixels
    std::vector<double> mean{0};       ///< of bytes after division by 255; one, or one per channel; empty: auto
    std::vector<double> deviation{1};  ///< positive; empty: auto
    Augmentation augmentation{};
    std::optional<std::int64_t> training_samples{};  ///< nothing: all
    Validation validation{};
    std::int64_t validation_samples = 0;     ///< of SampledValidation
    std::int64_t generated_samples = 12000;  ///< `generated`: size of the training set; the test set has a sixth of it
    /// `folder`: height and width to which images are resized; empty: as in the files. `generated`: one number, the
    /// height and width; empty: 28.
    std::vector<std::int64_t> size{};
    bool grey = false;                       ///< `folder`: one channel; otherwise RGB
    std::vector<std::int64_t> background{};  ///< `folder`: RGB behind transparent pixels; empty: refused
    bool operator==(const Options&) const = default;
};

/// Returns the paths of the systems, or the single path.
[[nodiscard]] std::vector<std::string> paths_of(const Options& options);
/// Returns the paths of the data as one text for messages.
[[nodiscard]] std::string places_text(const Options& options);
[[nodiscard]] bool is_weighted(const Options& options);

struct Datasets {
    Dataset training;         ///< includes the validation samples; split() separates them
    Dataset test;             ///< may be empty
    std::string fingerprint;  ///< CRC-32C of all of it: a resumed run must see the same data
};

/// Reads or generates both sets. If a file is missing or wrong, throws ConfigError with the path, the expected contents
/// and how to get them. Throws StorageError if streamed pixels cannot be read. `seed` determines generated data, and
/// the training samples over which `normalize: auto` computes mean and deviation.
[[nodiscard]] Datasets load(const Options& options, std::uint64_t seed);

/// Loads only the test set, which must exist, and leaves `training` empty. The number of classes follows from the test
/// labels. Throws the same errors as load().
[[nodiscard]] Datasets load_test(const Options& options, std::uint64_t seed);

/// Appends the samples of `from` to `to`. Images of both sets must have the same shape, and pixels must be in memory in
/// both sets or streamed in both. The validation samples of `from` become validation samples of `to`.
void append(Dataset& to, const Dataset& from);

/// Calls visit(pixels) for some whole images of `samples` at a time, in order. The bytes are laid out as in
/// Dataset::pixels. Uses bounded memory for streamed pixels. Throws StorageError if streamed pixels cannot be read.
using VisitPixels = std::function<void(std::span<const std::uint8_t> pixels)>;
void visit_pixels(const Dataset& set, std::span<const std::int64_t> samples, const VisitPixels& visit);
/// Calls visit(pixels) for the pixels of all samples of `set`.
void visit_pixels(const Dataset& set, const VisitPixels& visit);

/// Returns the size in bytes of the read-ahead buffers of a training with `batch` images per step on this rank; 0 if
/// the pixels are in memory.
[[nodiscard]] std::int64_t prefetch_bytes(const Options& options, const Dataset& set, std::int64_t batch);

/// A data set in one block of memory, which the ranks of a node can share. block_bytes() returns its size,
/// write_block() fills it, and view_block() returns a view of it. `block` must be aligned for std::int64_t and outlive
/// the view. Streamed pixels stay in their files; view_block() opens the files again and throws StorageError if one has
/// changed.
[[nodiscard]] std::size_t block_bytes(const Dataset& set);
void write_block(const Dataset& set, std::span<std::byte> block);
[[nodiscard]] Dataset view_block(std::span<const std::byte> block);

/// The disjoint sets of training and validation images. Only the seed determines these sets, unless the user chooses
/// the validation images. split() throws ConfigError if there are too few images.
struct Split {
    std::vector<std::int64_t> training;
    std::vector<std::int64_t> validation;
};
[[nodiscard]] Split split(const Options& options, const Dataset& set, std::uint64_t seed);

/// Returns the order in which an individual sees its `count` training samples in epoch `epoch` (0 is the first). This
/// permutation depends only on (seed, individual, epoch).
[[nodiscard]] std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t individual, std::int64_t epoch,
                                                     std::int64_t count);

/// The contiguous part of a global batch that one rank processes, as a half-open range. share_of() divides the batch
/// [begin, end) into parts of at most ceil((end − begin) / ranks) samples. The part of a rank may be empty.
struct Share {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};
[[nodiscard]] Share share_of(std::int64_t begin, std::int64_t end, int rank, int ranks);

/// Writes generated data into `folder` as gzipped IDX files with the usual MNIST names.
void generate(const Options& options, std::uint64_t seed, const std::string& folder);

}  // namespace finch::data
