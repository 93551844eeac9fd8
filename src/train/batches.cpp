// The images of a training's batches.
#include "finch/train/class_weights.hpp"
#include "finch/train/training.hpp"

#include "learner.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace finch::train {

void Training::shuffle_epoch() {
    if (order_epoch_ != position_.epoch) {
        order_ = data::epoch_order(recipe_.seed, recipe_.individual, position_.epoch, shares_);
        order_epoch_ = position_.epoch;
    }
}

/// Returns the summed sample weights of the global batch from the present position to `end`.
double Training::batch_weight(std::int64_t end) const {
    std::vector<std::int64_t> samples;
    for (std::int64_t place = position_.sample; place < end; ++place) {
        samples.push_back(split_.training[order_[static_cast<std::size_t>(place)]]);
    }
    return weight_of(class_weights_, dataset_, samples);
}

/// Returns the summed weights of all samples of the present epoch. The weights are added in the data set's order, so
/// the result does not depend on the shuffled order.
double Training::epoch_weight() {
    shuffle_epoch();
    std::vector<std::int64_t> samples;
    for (const std::uint32_t place : order_) {
        samples.push_back(split_.training[place]);
    }
    std::sort(samples.begin(), samples.end());
    return weight_of(class_weights_, dataset_, samples);
}

/// Returns this rank's share of each part of the global batch [`begin`, `end`), as positions in the epoch.
std::vector<data::Share> Training::parts_of_batch(std::int64_t begin, std::int64_t end) const {
    const auto parts = static_cast<int>(recipe_.training.micro_batches);
    std::vector<data::Share> shares;
    for (int part = 0; part < parts; ++part) {
        const data::Share all = data::share_of(begin, end, part, parts);
        shares.push_back(data::share_of(all.begin, all.end, group_.rank(), group_.size()));
    }
    return shares;
}

/// Appends one training batch of this rank to `indices`, padded with samples of weight 0.
void Training::add_training_images(const data::Share& share, std::vector<std::int64_t>& indices) const {
    const std::size_t end = indices.size() + static_cast<std::size_t>(plan().batch);
    for (std::int64_t place = share.begin; place < share.end; ++place) {
        indices.push_back(split_.training[order_[static_cast<std::size_t>(place)]]);
    }
    indices.resize(end, -1);
}

/// Appends one validation batch of this rank, from sample `begin` on, to `indices`, padded with samples of weight 0.
void Training::add_validation_images(std::int64_t begin, std::vector<std::int64_t>& indices) const {
    const std::size_t after = indices.size() + static_cast<std::size_t>(plan().batch);
    const std::int64_t end = std::min(begin + plan().batch * group_.size(), validation_samples());
    const data::Share share = data::share_of(begin, end, group_.rank(), group_.size());
    indices.insert(indices.end(), split_.validation.begin() + share.begin, split_.validation.begin() + share.end);
    indices.resize(after, -1);
}

/// Announces the images of the epoch's next steps, so that they can be read in advance.
void Training::announce_training() {
    coming_.clear();
    const std::int64_t most = learner_->batches_ahead() * plan().batch;
    for (std::int64_t begin = position_.sample; std::ssize(coming_) < most && begin < training_samples();
         begin += global_batch_) {
        for (const data::Share& share : parts_of_batch(begin, std::min(begin + global_batch_, training_samples()))) {
            add_training_images(share, coming_);
        }
    }
    learner_->announce_training(coming_);
}

void Training::announce_validation() {
    coming_.clear();
    const std::int64_t most = learner_->batches_ahead() * plan().batch;
    for (std::int64_t begin = position_.sample; std::ssize(coming_) < most && begin < validation_samples();
         begin += plan().batch * group_.size()) {
        add_validation_images(begin, coming_);
    }
    learner_->announce_validation(coming_);
}

}  // namespace finch::train
