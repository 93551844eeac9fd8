#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace finch::report {

/// Predictions of a network for some samples, and the labels of the samples. All spans except `names` and `scores` have
/// the same length.
struct Guesses {
    std::int64_t classes = 0;
    std::span<const std::int32_t> truths;   ///< each in [0, classes)
    std::span<const std::int32_t> guesses;  ///< each in [0, classes)
    std::span<const std::int32_t> places;   ///< rank of the true class by score; 0: the largest score
    std::span<const std::string> names{};   ///< class names
    std::span<const float> scores{};        ///< (samples, classes): the softmax; may be empty
};

/// Quality of the predictions: confusion counts, and figures derived from them.
struct Classification {
    std::int64_t classes = 0;
    std::vector<std::string> names{};  ///< class names; may be empty
    std::int64_t samples = 0;
    std::vector<std::int64_t> confusion{};  ///< (classes, classes): samples by true (row) and predicted class (column)
    double accuracy = 0;
    std::optional<double> top_5{};              ///< top-5 accuracy; only if there are 6 or more classes
    double macro_f1 = 0;                        ///< finch::macro_f1(); NaN without samples
    std::vector<std::int64_t> class_samples{};  ///< number of samples of each class
    std::vector<double> recall{};  ///< share of each class that is predicted correctly; NaN without samples
    /// The expected calibration error (Guo et al. 2017, "On Calibration of Modern Neural Networks", equation 5): the
    /// mean difference between a prediction's score and the accuracy of all predictions with similar scores, in
    /// `calibration_bins` bins of equal width. Empty without scores.
    std::optional<double> calibration_error{};
};
inline constexpr std::int64_t calibration_bins = 15;

[[nodiscard]] Classification classify(const Guesses& guesses);

/// Returns the figures as text: "accuracy 97.10 %, top 5 99.90 %, macro F1 0.9705".
[[nodiscard]] std::string figures_text(const Classification& found);

/// Returns the name of class `one`; empty if the class has no name.
[[nodiscard]] std::string name_of(const Classification& found, std::int64_t one);

/// Returns the calibration error as a line, or nothing if it is unknown.
[[nodiscard]] std::string calibration_text(const Classification& found);

/// Returns the confusion matrix as a table, with the samples and the recall of each class. For more than `most`
/// classes, returns a list of the `most` classes with the lowest recall, and a list of the `most` commonest confusions.
[[nodiscard]] std::string confusion_text(const Classification& found, std::int64_t most = 20);

}  // namespace finch::report
