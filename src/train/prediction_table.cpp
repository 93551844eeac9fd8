#include "prediction_table.hpp"

#include "finch/base/loss_order.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace finch::train {
namespace {

constexpr std::size_t scores_at_once = 1 << 18;

/// Softmax of a sample's logits.
void write_scores(std::span<const float> logits, std::span<float> scores) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) {
        sum += std::exp(static_cast<double>(logit) - largest);
    }
    std::transform(logits.begin(), logits.end(), scores.begin(), [largest, sum](float logit) {
        return static_cast<float>(std::exp(static_cast<double>(logit) - largest) / sum);
    });
}

/// How many classes stand before `label`: those with a larger logit, and those before it with an equal one. What is no
/// number is before none.
std::int64_t place_of(std::size_t label, std::span<const float> logits) {
    std::int64_t place = 0;
    for (std::size_t one = 0; one < logits.size(); ++one) {
        const bool is_after = one < label ? logits[label] > logits[one] : logits[label] >= logits[one];
        place += one == label || is_after ? 0 : 1;
    }
    return place;
}

}  // namespace

PredictionTable::PredictionTable(std::int64_t samples, std::int64_t outputs, bool labelled)
    : outputs_(static_cast<std::size_t>(outputs)),
      labelled_(labelled),
      predictions_(labelled ? static_cast<std::size_t>(samples) : 0),
      places_(predictions_.size()),
      scores_(samples <= most_scores / outputs ? static_cast<std::size_t>(samples * outputs) : 0) {}

void PredictionTable::add(std::size_t sample, std::span<const float> outputs, std::int32_t label) {
    const auto scores = scores_.empty() ? std::span<float>() : std::span(scores_).subspan(sample * outputs_, outputs_);
    if (!labelled_) {
        std::copy_n(outputs.begin(), scores.size(), scores.begin());
        return;
    }
    predictions_[sample] =
        std::max_element(outputs.begin(), outputs.end(), [](float a, float b) { return is_better_loss(-b, -a); }) -
        outputs.begin();
    places_[sample] = place_of(static_cast<std::size_t>(label), outputs);
    if (!scores.empty()) {
        write_scores(outputs, scores);
    }
}

void PredictionTable::gather(const comm::Group& group) {
    group.sum(predictions_);
    group.sum(places_);
    for (std::size_t begin = 0; group.size() > 1 && begin < scores_.size(); begin += scores_at_once) {
        const auto part = std::span(scores_).subspan(begin, std::min(scores_at_once, scores_.size() - begin));
        std::vector<double> sums(part.begin(), part.end());
        group.sum(sums);
        std::transform(sums.begin(), sums.end(), part.begin(), [](double sum) { return static_cast<float>(sum); });
    }
}

void PredictionTable::move_to(Measured& measured) && {
    measured.predictions.assign(predictions_.begin(), predictions_.end());
    measured.places.assign(places_.begin(), places_.end());
    measured.scores = std::move(scores_);
}

}  // namespace finch::train
