#pragma once

#include <cstdint>
#include <span>

namespace finch::test {

/// Returns the mean over classes of 2 · precision · recall / (precision + recall), by counting each class separately. A
/// class without true positives has 0; a class without samples and predictions does not count.
inline double naive_f1(std::span<const std::int32_t> labels, std::span<const std::int32_t> predictions,
                       std::int32_t classes) {
    double sum = 0;
    int present = 0;
    for (std::int32_t one = 0; one < classes; ++one) {
        double hits = 0;
        double predicted = 0;
        double samples = 0;
        for (std::size_t i = 0; i < labels.size(); ++i) {
            hits += labels[i] == one && predictions[i] == one ? 1 : 0;
            predicted += predictions[i] == one ? 1 : 0;
            samples += labels[i] == one ? 1 : 0;
        }
        if (predicted + samples == 0) {
            continue;
        }
        ++present;
        const double precision = hits / predicted;
        const double recall = hits / samples;
        sum += hits == 0 ? 0 : 2 * precision * recall / (precision + recall);
    }
    return sum / present;
}

}  // namespace finch::test
