#pragma once

#include "finch/base/fields.hpp"

#include <cstdint>

namespace finch {

/// The results of one epoch of a training: one row of its learning curve.
struct Epoch {
    std::int32_t epoch = 0;
    std::int32_t ranks = 0;
    double training_loss = 0;
    double training_accuracy = 0;
    double validation_loss = 0;
    double validation_accuracy = 0;
    double learning_rate = 0;
    double seconds = 0;
};

constexpr auto fields_of(const Epoch*) {
    return std::tuple{
        Field{"epoch", &Epoch::epoch, "1 is the first"}.repeated(),
        Field{"ranks", &Epoch::ranks, "that trained it; 0: more than one number of ranks did"},
        Field{"training_loss", &Epoch::training_loss, "mean over the training set, as it was trained"}.repeated(),
        Field{"training_accuracy", &Epoch::training_accuracy, "in [0, 1]; not a number for targets"}.repeated(),
        Field{"validation_loss", &Epoch::validation_loss, "mean over the validation set"}.repeated(),
        Field{"validation_accuracy", &Epoch::validation_accuracy, "in [0, 1]; not a number for targets"}.repeated(),
        Field{"learning_rate", &Epoch::learning_rate, "of its last step"}.repeated(),
        Field{"seconds", &Epoch::seconds, "of its batches, those of validation included, by the leader's device"},
    };
}
static_assert(lists_every_member<Epoch>);

}  // namespace finch
