#pragma once

#include "finch/backend/device.hpp"
#include "finch/base/named_array.hpp"
#include "finch/comm/group.hpp"
#include "finch/report/classification.hpp"
#include "finch/train/training.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Functions that measure a network on samples of a data set, store the results in a model file, and write them as
/// text.
namespace finch::run {

struct Results {
    train::Measured measured;
    std::vector<std::int64_t> samples;   ///< indices in the data set, by row
    std::vector<std::int32_t> labels{};  ///< by row; only of a set with labels
    std::vector<float> targets{};        ///< (rows, target_size); only of a set with targets
    std::int64_t target_size = 0;
    std::optional<report::Classification> classification{};  ///< only of a set with labels
};

/// Collective over the worker. Measures a network on the given samples of `set`; if `samples` is empty, on all samples.
/// Uses smaller batches if the device has too little memory for large batches: trainings may have filled it. Throws the
/// same exceptions as train::measure().
[[nodiscard]] Results measure_results(backend::Device& device, const comm::Group& group, const train::Recipe& recipe,
                                      const NamedArrays& weights, const data::Dataset& set,
                                      std::vector<std::int64_t> samples = {});

/// True if `arrays` contain results below the name `set` ("test", "validation").
[[nodiscard]] bool has_results(const NamedArrays& arrays, const std::string& set);
/// Stores `results` in `arrays` below the name `set` and removes earlier results there.
/// - Labels: loss, accuracy, top_5 (6 or more classes), macro_f1, recall (classes), calibration_error, confusion
///   (classes, classes); by sample: index, truth, predictions, scores (samples, classes).
/// - Targets: loss; by sample: index, truth and predictions (samples, target_size).
void set_results(NamedArrays& arrays, const std::string& set, const Results& results);

inline constexpr std::int64_t most_mistakes = 64;                        ///< images of set_mistakes()
inline constexpr std::int64_t most_drawn = 25;                           ///< images of set_image_sample()
inline constexpr std::int64_t most_image_bytes = std::int64_t{8} << 20;  ///< of each of the two

/// Adds the 64 wrong guesses with the highest scores to `arrays`, below `name`/mistakes, highest score first. The
/// arrays are index, truth, guess, score (N) and the unchanged images (N, H, W, C). `results` are the results on `set`.
/// Adds fewer guesses if the images would take more than 8 MiB. Adds nothing if `results` have no scores or the set has
/// targets. Throws StorageError if streamed images cannot be read.
void set_mistakes(NamedArrays& arrays, const std::string& name, const Results& results, const data::Dataset& set);

/// Adds 25 images, drawn by `seed`, with their guesses to `arrays`, below `name`/sample. Arrays, limits and exceptions
/// are those of set_mistakes(). The sample depends only on the seed and the number of images in `results`.
void set_image_sample(NamedArrays& arrays, const std::string& name, const Results& results, const data::Dataset& set,
                      std::uint64_t seed);

/// Returns the results as text: "test loss 0.0912, test accuracy 97.10 %, … (100 images)".
[[nodiscard]] std::string results_text(const std::string& set, const Results& results);

/// Writes a line for each sample: index, truth, guess, score_0 …, and truth_name, guess_name if the classes have names.
/// For a set with targets, the line is: index, truth_0 …, guess_0 …. Throws ConfigError if `path` cannot be written.
void write_predictions(const std::filesystem::path& path, const Results& results);

}  // namespace finch::run
