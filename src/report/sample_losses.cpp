#include "sample_losses.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace finch::report {
namespace {

template <class T>
const std::vector<T>* values_of(const NamedArrays& arrays, const std::string& name) {
    const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const auto& one) { return one.name == name; });
    return found == arrays.end() ? nullptr : std::get_if<std::vector<T>>(&found->values);
}

std::optional<double> number_of(const NamedArrays& arrays, const std::string& name) {
    const auto* const values = values_of<double>(arrays, name);
    return values != nullptr && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
}

/// −log of each sample's score of its class.
std::vector<double> cross_entropies(const std::vector<float>& scores, const std::vector<std::int64_t>& truth) {
    std::vector<double> losses;
    const std::size_t classes = scores.size() / std::max<std::size_t>(1, truth.size());
    for (std::size_t i = 0; i < truth.size() && scores.size() == truth.size() * classes; ++i) {
        const auto label = static_cast<std::size_t>(truth[i]);
        if (label < classes) {
            losses.push_back(-std::log(std::max(1e-30, double{scores[i * classes + label]})));
        }
    }
    return losses;
}

/// The mean of |prediction − target|^power over each sample's targets.
std::vector<double> distances(const std::vector<float>& predictions, const std::vector<float>& truth,
                              std::size_t samples, double power) {
    std::vector<double> losses;
    const std::size_t targets = truth.size() / std::max<std::size_t>(1, samples);
    for (std::size_t i = 0; i < samples && predictions.size() == truth.size() && targets > 0; ++i) {
        double sum = 0;
        for (std::size_t k = i * targets; k < (i + 1) * targets; ++k) {
            sum += std::pow(std::abs(double{predictions[k]} - double{truth[k]}), power);
        }
        losses.push_back(sum / static_cast<double>(targets));
    }
    return losses;
}

/// The bootstrap's interval of `losses`, if their mean is the recorded loss.
std::optional<Interval> interval_of(const std::vector<double>& losses, double recorded) {
    double sum = 0;
    for (const double loss : losses) {
        sum += loss;
    }
    const double mean = sum / static_cast<double>(losses.size());
    return std::abs(mean - recorded) <= 1e-3 * std::abs(recorded) ? std::optional(bootstrap_interval(losses))
                                                                  : std::nullopt;
}

}  // namespace

std::optional<SampleLosses> sample_losses(const NamedArrays& arrays, const std::string& set, bool wants_rate) {
    const auto* const index = values_of<std::int64_t>(arrays, set + "/index");
    const std::optional<double> loss = number_of(arrays, set + "/loss");
    if (index == nullptr || index->empty() || !loss) {
        return std::nullopt;
    }
    SampleLosses found{.samples = std::ssize(*index), .loss = *loss, .errors = {}, .interval = {}};
    const std::optional<double> accuracy = number_of(arrays, set + "/accuracy");
    if (accuracy && (wants_rate || set == "test")) {
        found.loss = 1 - *accuracy;
        found.errors = std::llround(found.loss * static_cast<double>(found.samples));
        found.interval = wilson_interval(*found.errors, found.samples);
        return found;
    }
    const auto* const scores = values_of<float>(arrays, set + "/scores");
    const auto* const labels = values_of<std::int64_t>(arrays, set + "/truth");
    if (scores != nullptr && labels != nullptr) {
        found.interval = interval_of(cross_entropies(*scores, *labels), *loss);
        return found;
    }
    const auto* const predictions = values_of<float>(arrays, set + "/predictions");
    const auto* const targets = values_of<float>(arrays, set + "/truth");
    if (predictions != nullptr && targets != nullptr) {
        for (const double power : {2.0, 1.0}) {
            const auto interval = interval_of(distances(*predictions, *targets, index->size(), power), *loss);
            found.interval = found.interval ? found.interval : interval;
        }
    }
    return found;
}

}  // namespace finch::report
