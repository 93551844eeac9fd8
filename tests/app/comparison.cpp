#include "finch/app/comparison.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

using namespace finch;
using namespace finch::app;

namespace {

/// Returns an individual with one epoch per element of `ranks`. Each element is the number of ranks that trained the
/// epoch. The last start had as many ranks as the last epoch.
search::Individual trained_by(const std::vector<std::int32_t>& ranks) {
    search::Individual individual;
    individual.ranks = ranks.back();
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        individual.curve.push_back(
            {static_cast<std::int32_t>(i + 1), ranks[i], 1, 0.5, 1.0 / static_cast<double>(i + 1), 0.5, 0.1, 1});
    }
    return individual;
}

/// Returns a copy of the recorded curve. Its losses from epoch `from` on are larger by the relative difference `apart`.
std::vector<Epoch> again(const search::Individual& recorded, std::int64_t from, double apart) {
    std::vector<Epoch> curve;
    for (const Epoch& one : recorded.curve) {
        const double loss = one.validation_loss * (one.epoch >= from ? 1 + apart : 1);
        curve.push_back(one);
        curve.back().validation_loss = loss;
        curve.back().seconds = 1;
        curve.back().ranks = 1;
    }
    return curve;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("compare: with a constant number of ranks, a replay is equal only if all epochs are bitwise equal") {
    const search::Individual recorded = trained_by({2, 2, 2});
    const std::vector<Epoch> whole = again(recorded, 9, 0);

    CHECK(compare(again(recorded, 9, 0), recorded, 2).equal);
    CHECK(contains(compare(again(recorded, 9, 0), recorded, 2).text, "\nequal to the last bit\n"));
    CHECK_FALSE(compare(again(recorded, 3, 1e-15), recorded, 2).equal);
    CHECK_FALSE(compare(std::span(whole).first(2), recorded, 2).equal);
}

TEST_CASE("compare: checks all fields of an epoch except its seconds and ranks") {
    search::Individual recorded = trained_by({2, 2});
    recorded.curve.back().validation_f1 = 0.5;
    const auto is_seen = [&](auto change) {
        std::vector<Epoch> curve = recorded.curve;
        change(curve.back());
        return !compare(curve, recorded, 2).equal;
    };

    CHECK(is_seen([](Epoch& epoch) { epoch.epoch += 1; }));
    CHECK(is_seen([](Epoch& epoch) { epoch.training_loss += 1e-15; }));
    CHECK(is_seen([](Epoch& epoch) { epoch.training_accuracy += 1e-15; }));
    CHECK(is_seen([](Epoch& epoch) { epoch.validation_loss += 1e-15; }));
    CHECK(is_seen([](Epoch& epoch) { epoch.validation_accuracy += 1e-15; }));
    CHECK(is_seen([](Epoch& epoch) { epoch.learning_rate += 1e-15; }));
    CHECK(is_seen([](Epoch& epoch) { epoch.validation_f1 = 0.75; }));
    CHECK_FALSE(is_seen([](Epoch& epoch) { epoch.seconds += 1; }));
}

TEST_CASE("compare: a number that the recording version did not know is not compared") {
    const search::Individual recorded = trained_by({2, 2});  // its F1 is NaN
    std::vector<Epoch> curve = recorded.curve;
    curve.back().validation_f1 = 0.75;

    CHECK(compare(curve, recorded, 2).equal);
}

TEST_CASE("compare: epochs after a change of the number of ranks do not have to be bitwise equal") {
    const search::Individual recorded = trained_by({2, 2, 0, 1, 1});

    const Comparison same = compare(again(recorded, 3, 1e-3), recorded, 2);
    const Comparison other = compare(again(recorded, 2, 1e-3), recorded, 2);

    CHECK(comparable_epochs(recorded, 2) == 2);
    CHECK(same.equal);
    CHECK(contains(same.text, "epochs 1 to 2: equal to the last bit"));
    CHECK(contains(same.text, "at most 0.001 apart"));
    CHECK_FALSE(other.equal);
    CHECK(contains(other.text, "epochs 1 to 2: not equal"));
}

TEST_CASE("compare: a replay with another number of ranks than in the first epoch is never equal") {
    const search::Individual recorded = trained_by({2, 2, 1});

    const Comparison comparison = compare(again(recorded, 9, 0), recorded, 1);

    CHECK(comparable_epochs(recorded, 1) == 0);
    CHECK_FALSE(comparison.equal);
    CHECK(contains(comparison.text, "nothing can be equal to the last bit"));
}
