#pragma once

#include "finch/base/fields.hpp"

#include <cstdint>
#include <limits>

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
    double validation_f1 = std::numeric_limits<double>::quiet_NaN();
};

constexpr auto fields_of(const Epoch*) {
    return std::tuple{
        Field{"epoch", &Epoch::epoch, "number of the epoch; 1 is the first"}.repeated(),
        Field{"ranks", &Epoch::ranks, "number of ranks that trained the epoch; 0: the number changed within it"},
        Field{"training_loss", &Epoch::training_loss, "mean loss over the training set, computed in the training steps"}
            .repeated(),
        Field{"training_accuracy", &Epoch::training_accuracy,
              "accuracy in the training steps, in [0, 1]; NaN for regression"}
            .repeated(),
        Field{"validation_loss", &Epoch::validation_loss, "mean loss over the validation set"}.repeated(),
        Field{"validation_accuracy", &Epoch::validation_accuracy,
              "accuracy on the validation set, in [0, 1]; NaN for regression"}
            .repeated(),
        Field{"learning_rate", &Epoch::learning_rate, "learning rate of the epoch's last step"}.repeated(),
        Field{"seconds", &Epoch::seconds,
              "time of the epoch's training and validation batches on the leader's device, in seconds"},
        Field{"validation_f1", &Epoch::validation_f1,
              "macro F1 on the validation set; NaN: regression, a program, or not recorded"}
            .since(2)
            .repeated(),
    };
}
static_assert(lists_every_member<Epoch>);

}  // namespace finch
