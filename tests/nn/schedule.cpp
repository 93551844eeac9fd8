#include "finch/nn/schedule.hpp"

#include "formula.hpp"

#include <doctest/doctest.h>
#include <sstream>

using namespace finch::nn;

namespace {

Schedule parse(std::istream& text) {
    std::string name;
    text >> name;
    if (name == "step") {
        StepSchedule step;
        text >> step.every >> step.factor;
        return step;
    }
    if (name == "exponential") {
        ExponentialSchedule exponential;
        text >> exponential.factor;
        return exponential;
    }
    if (name == "cosine") {
        CosineSchedule cosine;
        text >> cosine.minimum;
        return cosine;
    }
    if (name == "one_cycle") {
        OneCycleSchedule cycle;
        text >> cycle.rise >> cycle.start >> cycle.minimum;
        return cycle;
    }
    return ConstantSchedule{};
}

}  // namespace

TEST_CASE("learning_rate: every schedule gives PyTorch's rate in every epoch") {
    finch::test::Fixture fixture("schedules.txt");
    std::string line;
    int schedules = 0;

    while (fixture.line(line)) {
        CAPTURE(line);
        std::istringstream text(line);
        const Schedule schedule = parse(text);
        std::string colon;
        text >> colon;
        for (int epoch = 0; epoch < 12; ++epoch) {
            double expected = 0;
            text >> expected;
            CHECK(learning_rate(schedule, 0.5, {.unit = epoch, .units = 12}) ==
                  doctest::Approx(expected).epsilon(1e-12));
        }
        ++schedules;
    }

    CHECK(schedules == 8);
}
