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

/// Results of a network on samples of a data set: measured, in arrays of a model file, in a table.
namespace finch::run {

struct Results {
    train::Measured measured;
    std::vector<std::int64_t> samples;   ///< their indices in the data set, by row
    std::vector<std::int32_t> labels{};  ///< by row; of a set with labels
    std::vector<float> targets{};        ///< (rows, target_size); of one with targets
    std::int64_t target_size = 0;
    std::optional<report::Classification> classification{};  ///< of labels
};

/// Collective over the worker. Of `samples`; none: of all of the set. In small batches where large ones find no memory,
/// for trainings may have filled the device. Throws as train::measure().
[[nodiscard]] Results measure_results(backend::Device& device, const comm::Group& group, const train::Recipe& recipe,
                                      const NamedArrays& weights, const data::Dataset& set,
                                      std::vector<std::int64_t> samples = {});

/// Whether `arrays` hold results below `set` ("test", "validation").
[[nodiscard]] bool has_results(const NamedArrays& arrays, const std::string& set);
/// Puts them there, in place of those that were: loss, accuracy, top_5 (of 6 classes and more), macro_f1, confusion
/// (classes, classes); by sample: index, truth, predictions, scores (samples, classes). Of targets: loss; by sample:
/// index, truth and predictions (samples, target_size).
void set_results(NamedArrays& arrays, const std::string& set, const Results& results);

/// Adds below `name`/mistakes the 64 surest wrong guesses of `set`, which `results` are of, the surest first: index,
/// truth, guess, score (N) and images (N, H, W, C) as they were read; fewer where they would take more than 8 MiB.
/// Nothing without scores, or of targets. Throws StorageError if streamed images cannot be read.
void set_mistakes(NamedArrays& arrays, const std::string& name, const Results& results, const data::Dataset& set);

/// "test loss 0.0912, test accuracy 97.10 %, … (100 images)"
[[nodiscard]] std::string results_text(const std::string& set, const Results& results);

/// A line for each sample: index, truth, guess, score_0 …, and if classes have names truth_name, guess_name; of
/// targets: index, truth_0 …, guess_0 …. Throws ConfigError if `path` cannot be written.
void write_predictions(const std::filesystem::path& path, const Results& results);

}  // namespace finch::run
