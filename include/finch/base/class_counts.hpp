#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace finch {

/// The samples of a class, the samples that were predicted to be of the class, and those that are both.
struct ClassCounts {
    std::int64_t samples = 0;
    std::int64_t guesses = 0;
    std::int64_t hits = 0;
    ClassCounts& operator+=(const ClassCounts& other) noexcept {
        samples += other.samples;
        guesses += other.guesses;
        hits += other.hits;
        return *this;
    }
};

/// Returns the mean F1 over classes, equal to scikit-learn's f1_score(average="macro"). The F1 of a class is 2·hits /
/// (samples + guesses), and 0 without hits. A class without samples and guesses is not part of the mean. Returns NaN if
/// there is no sample.
[[nodiscard]] double macro_f1(std::span<const ClassCounts> classes) noexcept;

/// Returns the counts of all classes in a row, for sums over ranks and for files: samples, guesses and hits of class 0,
/// then those of class 1, and so on.
[[nodiscard]] std::vector<std::int64_t> to_numbers(std::span<const ClassCounts> classes);
/// The inverse of to_numbers().
[[nodiscard]] std::vector<ClassCounts> to_class_counts(std::span<const std::int64_t> numbers);

}  // namespace finch
