#include "finch/base/bytes.hpp"
#include "finch/base/log.hpp"
#include "finch/comm/group.hpp"
#include "finch/train/class_weights.hpp"
#include "finch/train/training.hpp"

#include "learner.hpp"
#include "watch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <vector>

namespace finch::train {

/// The leader's decision at the end of an epoch. The struct has no padding, so it is broadcast as raw bytes.
struct Training::EpochDecision {
    Epoch epoch;
    double best = 0;
    std::int64_t best_epoch = 0;
    std::int64_t epochs_without_improvement = 0;
    std::int64_t improved = 0;
    State state = State::running;
    std::int32_t unused = 0;
};

double objective_value(Objective objective, const Epoch& epoch) noexcept {
    switch (objective) {
        case Objective::validation_loss:
            return epoch.validation_loss;
        case Objective::validation_error:
            return 1 - epoch.validation_accuracy;
    }
    return std::numeric_limits<double>::quiet_NaN();
}

namespace {

/// Returns the macro F1 of an epoch; NaN for data with targets, or if the classes of some of the validated `samples`
/// are not known: an earlier version of Finch wrote no counts into snapshots.
double f1_of(std::span<const ClassCounts> classes, std::int64_t samples) {
    std::int64_t counted = 0;
    for (const ClassCounts& one : classes) {
        counted += one.samples;
    }
    return counted == samples ? macro_f1(classes) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void Training::end_epoch() {
    agree_on_epoch();
    if (profile_ != nullptr) {
        const GroupTimes& times = profile_->end_epoch(group_, position_.epoch);
        if (group_.is_leader()) {
            spdlog::info("{}", epoch_text(times));
        }
    }
}

void Training::agree_on_epoch() {
    const backend::LapScope scope(profile_, backend::Activity::wait);
    std::array losses{sums_.training.loss, sums_.validation.loss};
    std::vector<std::int64_t> counts{sums_.training.correct, sums_.training.samples, sums_.validation.correct,
                                     sums_.validation.samples};
    const std::size_t first_class = counts.size();
    std::ranges::copy(to_numbers(learner_->class_counts()), std::back_inserter(counts));
    group_.sum(losses);
    group_.sum(counts);

    Bytes bytes;
    if (group_.is_leader()) {
        ByteWriter(bytes).put(judge(losses, counts, to_class_counts(std::span(counts).subspan(first_class))));
    }
    group_.broadcast(bytes);
    obey(ByteReader(bytes).get<EpochDecision>());
}

Training::EpochDecision Training::judge(std::span<const double> losses, std::span<const std::int64_t> counts,
                                        std::span<const ClassCounts> classes) {
    const bool is_weighted = !class_weights_.empty();
    const double training_weight = is_weighted ? epoch_weight() : static_cast<double>(counts[1]);
    const double validation_weight =
        is_weighted ? weight_of(class_weights_, dataset_, split_.validation) : static_cast<double>(counts[3]);
    const auto accuracy = [&](std::int64_t correct, std::int64_t samples) {
        return recipe_.training.loss == Loss::cross_entropy
                   ? static_cast<double>(correct) / static_cast<double>(samples)
                   : std::numeric_limits<double>::quiet_NaN();
    };
    EpochDecision decision;
    decision.epoch = {.epoch = static_cast<std::int32_t>(position_.epoch + 1),
                      .ranks = static_cast<std::int32_t>(epoch_ranks_),
                      .training_loss = losses[0] / training_weight,
                      .training_accuracy = accuracy(counts[0], counts[1]),
                      .validation_loss = losses[1] / validation_weight,
                      .validation_accuracy = accuracy(counts[2], counts[3]),
                      .learning_rate = learning_rate(training_samples() - 1),
                      .seconds = sums_.seconds,
                      .validation_f1 = f1_of(classes, counts[3])};
    const bool overflows = loss_scale_ && loss_scale_->is_exhausted();
    if (overflows || !std::isfinite(decision.epoch.training_loss) || !std::isfinite(decision.epoch.validation_loss)) {
        decision.state = State::diverged;
    } else {
        const double value = objective_value(recipe_.objective, decision.epoch);
        decision.improved = stopping_.improved(decision.epoch.epoch, value) ? 1 : 0;
        const bool last = decision.epoch.epoch >= recipe_.training.epochs;
        decision.state = last || stopping_.exhausted()     ? State::finished
                         : is_pruned_after(decision.epoch) ? State::pruned
                                                           : State::running;
    }
    decision.best = stopping_.best;
    decision.best_epoch = stopping_.best_epoch;
    decision.epochs_without_improvement = stopping_.epochs_without_improvement;
    return decision;
}

bool Training::is_pruned_after(const Epoch& epoch) const {
    if (!pruner_) {
        return false;
    }
    std::vector<Epoch> curve = curve_;
    curve.push_back(epoch);
    return pruner_(curve, recipe_.training.epochs);
}

void Training::obey(const EpochDecision& decision) {
    stopping_.best = decision.best;
    stopping_.best_epoch = decision.best_epoch;
    stopping_.epochs_without_improvement = decision.epochs_without_improvement;
    if (decision.state != State::diverged) {
        curve_.push_back(decision.epoch);
        if (watch_) {
            watch_->end_epoch(decision.epoch.epoch, learner_->state().parameters);
        }
    }
    if (decision.improved != 0) {
        best_state_ = learner_->validated_state();
    }
    if (decision.state != State::running) {
        ended_ = decision.state;
    }
    position_ = {.epoch = position_.epoch + 1};
    sums_ = {};
    epoch_ranks_ = group_.size();
    learner_->set_sums({}, {}, {});
}

}  // namespace finch::train
