#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace finch::report {

/// Predictions of a network for some samples, and their labels. All spans except `names` have the same length.
struct Guesses {
    std::int64_t classes = 0;
    std::span<const std::int32_t> truths;   ///< each in [0, classes)
    std::span<const std::int32_t> guesses;  ///< each in [0, classes)
    std::span<const std::int32_t> places;   ///< of the truth among the classes by their scores; 0: it has the largest
    std::span<const std::string> names{};   ///< of the classes
};

/// Quality of the predictions: confusion counts, and figures derived from them.
struct Classification {
    std::int64_t classes = 0;
    std::vector<std::string> names{};  ///< of the classes; empty: they have none
    std::int64_t samples = 0;
    std::vector<std::int64_t> confusion{};  ///< (classes, classes): samples of the row's class, taken for the column's
    double accuracy = 0;
    std::optional<double> top_5{};  ///< share of samples whose class is among the five likeliest; of 6 classes and more
    /// Mean over classes of F1 = 2·hits / (samples + guesses). A class without samples and guesses has none, and is
    /// left out; one of which no sample is guessed right has 0: scikit-learn's f1_score(average="macro"), in which a
    /// class that the labels skip takes nothing from the mean.
    double macro_f1 = 0;
};

[[nodiscard]] Classification classify(const Guesses& guesses);

/// "accuracy 97.10 %, top 5 99.90 %, macro F1 0.9705".
[[nodiscard]] std::string figures_text(const Classification& found);

/// The name of class `one`; empty if it has none.
[[nodiscard]] std::string name_of(const Classification& found, std::int64_t one);

/// The confusion matrix as a table; of more than `most` classes, so many of the commonest confusions.
[[nodiscard]] std::string confusion_text(const Classification& found, std::int64_t most = 20);

}  // namespace finch::report
