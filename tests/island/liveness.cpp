#include "finch/island/liveness.hpp"

#include <doctest/doctest.h>

using namespace finch::island;

namespace {

/// Checks for silent leaders every 0.1 s from `from` to `to`. Worker `speaker` (-1: no worker) sends a sign of life
/// before each check. Returns the first silent worker.
std::optional<std::int32_t> look(Liveness& liveness, double from, double to, std::int32_t speaker) {
    for (int tick = 0; from + 0.1 * tick <= to; ++tick) {
        const double now = from + 0.1 * tick;
        if (speaker >= 0) {
            liveness.heard(speaker, now);
        }
        if (const auto silent = liveness.silent(now)) {
            return silent;
        }
    }
    return std::nullopt;
}

}  // namespace

TEST_CASE("liveness: world rank 0 names a leader that is silent for three intervals, and no other leader") {
    Liveness liveness(0, 3, 5, 100);

    CHECK(look(liveness, 100, 129.9, 1) == std::nullopt);
    CHECK(look(liveness, 130, 130.2, 1) == 2);
}

TEST_CASE("liveness: if the timeout is longer than three intervals, the timeout is the limit") {
    Liveness liveness(0, 2, 60, 0);

    CHECK(look(liveness, 0, 59, -1) == std::nullopt);
    CHECK(look(liveness, 59.1, 61, -1) == 1);
}

TEST_CASE("liveness: the other leaders watch only world rank 0") {
    Liveness liveness(2, 3, 5, 0);
    Liveness deserted(2, 3, 5, 0);

    CHECK(look(liveness, 0, 100, 0) == std::nullopt);
    CHECK(look(deserted, 0, 31, 1) == 0);
}

TEST_CASE("liveness: a leader that announced a long operation is not silent until the announced time ends") {
    Liveness liveness(1, 2, 5, 0);
    liveness.heard(0, 0, 600);

    CHECK(look(liveness, 0, 599, -1) == std::nullopt);
    CHECK(look(liveness, 599.1, 601, -1) == 0);
}

TEST_CASE("liveness: the next short sign of life from a leader ends its long announcement") {
    Liveness liveness(0, 4, 5, 0);
    for (const std::int32_t worker : {1, 2, 3}) {
        liveness.heard(worker, 0, 600);
    }
    CHECK(look(liveness, 0, 100, -1) == std::nullopt);

    liveness.heard(2, 100);

    CHECK(look(liveness, 100, 129.9, 1) == std::nullopt);
    CHECK(look(liveness, 130, 130.2, 1) == 2);
}

TEST_CASE("liveness: the next sign of life is due one interval after the last sign") {
    Liveness liveness(1, 2, 5, 100);
    CHECK(liveness.next_sign() == 110);
    CHECK(liveness.sign_is_due(112));
    CHECK(liveness.next_sign() == 122);
    liveness.hurry();
    CHECK(liveness.next_sign() < 112);
    CHECK(Liveness(1, 2, 0, 0).next_sign() > 1e300);
}

TEST_CASE("liveness: after an announcement, a sign of life is due immediately, and then once per interval") {
    Liveness liveness(0, 2, 5, 0);

    CHECK_FALSE(liveness.sign_is_due(9));
    CHECK(liveness.sign_is_due(10));
    CHECK_FALSE(liveness.sign_is_due(11));
    liveness.hurry();
    CHECK(liveness.sign_is_due(12));
    CHECK_FALSE(liveness.sign_is_due(21));
}

TEST_CASE("liveness: after a suspension, a process waits for a full limit before it reports a silent leader") {
    Liveness liveness(0, 2, 5, 0);
    CHECK(look(liveness, 0, 10, -1) == std::nullopt);

    CHECK(liveness.silent(3610) == std::nullopt);

    CHECK(look(liveness, 3610, 3629, -1) == std::nullopt);
    CHECK(look(liveness, 3629.1, 3631, -1) == 1);
}

TEST_CASE("liveness: with many leaders the interval is longer, and a timeout of 0 disables the check") {
    CHECK(Liveness(0, 5000, 5, 0).interval() == doctest::Approx(50));
    CHECK(Liveness(0, 5000, 5, 0).limit() == doctest::Approx(150));
    Liveness nobody(0, 2, 0, 0);
    CHECK(look(nobody, 0, 1000, -1) == std::nullopt);
    CHECK_FALSE(nobody.sign_is_due(1000));
}

TEST_CASE("allowed_seconds: 20 times the last duration, at least 180 s, at most 600 s or three times that duration") {
    CHECK(allowed_seconds(0) == long_seconds);
    CHECK(allowed_seconds(0.01) == 180);
    CHECK(allowed_seconds(9) == 180);
    CHECK(allowed_seconds(15) == 300);
    CHECK(allowed_seconds(100) == 600);
    CHECK(allowed_seconds(1000) == 3000);
}
