#include "finch/train/early_stopping.hpp"

#include <doctest/doctest.h>
#include <limits>

using finch::train::EarlyStopping;

TEST_CASE("early stopping: ends after `patience` epochs in a row without improvement") {
    EarlyStopping stopping{.patience = 2};

    CHECK(stopping.improved(1, 0.5));
    CHECK_FALSE(stopping.improved(2, 0.6));
    CHECK_FALSE(stopping.exhausted());
    CHECK_FALSE(stopping.improved(3, 0.5));
    CHECK(stopping.exhausted());
    CHECK(stopping.best_epoch == 1);
    CHECK(stopping.best == 0.5);
}

TEST_CASE("early stopping: an improvement resets the patience") {
    EarlyStopping stopping{.patience = 2};

    for (std::int64_t epoch = 1; epoch <= 10; ++epoch) {
        // The loss is smaller in every second epoch.
        (void)stopping.improved(epoch, epoch % 2 == 1 ? 1.0 / static_cast<double>(epoch) : 2.0);
        CHECK_FALSE(stopping.exhausted());
    }
    CHECK(stopping.best_epoch == 9);
}

TEST_CASE("early stopping: a non-finite loss is never the best, in any epoch") {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
        EarlyStopping stopping{.patience = 2};

        CHECK_FALSE(stopping.improved(1, bad));
        CHECK(stopping.improved(2, 0.5));
        CHECK_FALSE(stopping.improved(3, bad));
        CHECK(stopping.improved(4, 0.25));
        CHECK_FALSE(stopping.improved(5, bad));
        CHECK_FALSE(stopping.improved(6, bad));
        CHECK(stopping.exhausted());
        CHECK(stopping.best_epoch == 4);
    }
}

TEST_CASE("early stopping: without patience a training never stops early, and NaN is not an improvement") {
    EarlyStopping stopping;

    CHECK(stopping.improved(1, 1));
    for (std::int64_t epoch = 2; epoch < 100; ++epoch) {
        CHECK_FALSE(stopping.improved(epoch, std::numeric_limits<double>::quiet_NaN()));
    }
    CHECK_FALSE(stopping.exhausted());
}
