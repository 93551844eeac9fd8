#include "finch/base/class_counts.hpp"

#include <limits>

namespace finch {

double macro_f1(std::span<const ClassCounts> classes) noexcept {
    double sum = 0;
    std::int64_t present = 0;
    for (const ClassCounts& one : classes) {
        if (one.samples + one.guesses > 0) {
            sum += static_cast<double>(2 * one.hits) / static_cast<double>(one.samples + one.guesses);
            ++present;
        }
    }
    return present > 0 ? sum / static_cast<double>(present) : std::numeric_limits<double>::quiet_NaN();
}

std::vector<std::int64_t> to_numbers(std::span<const ClassCounts> classes) {
    std::vector<std::int64_t> numbers;
    for (const ClassCounts& one : classes) {
        numbers.insert(numbers.end(), {one.samples, one.guesses, one.hits});
    }
    return numbers;
}

std::vector<ClassCounts> to_class_counts(std::span<const std::int64_t> numbers) {
    std::vector<ClassCounts> classes;
    for (std::size_t at = 0; at + 2 < numbers.size(); at += 3) {
        classes.push_back({numbers[at], numbers[at + 1], numbers[at + 2]});
    }
    return classes;
}

}  // namespace finch
