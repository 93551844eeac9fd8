#include "finch/report/classification.hpp"

#include "finch/base/random.hpp"

#include "support/naive_f1.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <numeric>

using namespace finch;
using namespace finch::report;

namespace {

using Classes = std::vector<std::int32_t>;

const Classes truths{0, 0, 0, 1, 1, 2, 2, 2, 2, 4, 4, 6};
const Classes guesses{0, 1, 0, 1, 2, 2, 2, 0, 2, 4, 5, 0};
const Classes places{0, 1, 0, 0, 4, 0, 0, 5, 0, 0, 7, 2};

}  // namespace

TEST_CASE("accuracy, macro F1 and confusion matrix equal those of scikit-learn 1.9") {
    // Classes 3 and 7 have no samples and no guesses. Class 5 has no samples. Class 6 has no guesses.
    const Classification found = classify({8, truths, guesses, places});

    CHECK(found.samples == 12);
    CHECK(found.accuracy == doctest::Approx(0.5833333333333334).epsilon(1e-15));
    CHECK(found.macro_f1 == doctest::Approx(0.4146825396825397).epsilon(1e-15));
    CHECK(found.confusion == std::vector<std::int64_t>{2, 1, 0, 0, 0, 0, 0, 0,  //
                                                       0, 1, 1, 0, 0, 0, 0, 0,  //
                                                       1, 0, 3, 0, 0, 0, 0, 0,  //
                                                       0, 0, 0, 0, 0, 0, 0, 0,  //
                                                       0, 0, 0, 0, 1, 1, 0, 0,  //
                                                       0, 0, 0, 0, 0, 0, 0, 0,  //
                                                       1, 0, 0, 0, 0, 0, 0, 0,  //
                                                       0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("top 5 counts true classes among the first five guesses, and is empty for up to five classes") {
    REQUIRE(classify({8, truths, guesses, places}).top_5);
    CHECK(*classify({8, truths, guesses, places}).top_5 == doctest::Approx(10.0 / 12));
    CHECK(classify({6, Classes{5}, Classes{5}, Classes{0}}).top_5);
    CHECK_FALSE(classify({5, Classes{4}, Classes{4}, Classes{0}}).top_5);
}

TEST_CASE("classify equals a naive count for 1000 random guesses of 13 classes") {
    RandomStream random(3, Purpose::test);
    Classes truth;
    Classes guess;
    for (int i = 0; i < 1000; ++i) {
        truth.push_back(static_cast<std::int32_t>(random.below(13)));
        guess.push_back(random.below(2) == 0 ? truth.back() : static_cast<std::int32_t>(random.below(13)));
    }

    const Classification found = classify({13, truth, guess, Classes(1000)});

    double hits = 0;
    for (std::int32_t one = 0; one < 13; ++one) {
        for (std::int32_t other = 0; other < 13; ++other) {
            std::int64_t count = 0;
            for (std::size_t i = 0; i < truth.size(); ++i) {
                count += truth[i] == one && guess[i] == other ? 1 : 0;
            }
            CHECK(found.confusion[static_cast<std::size_t>(one * 13 + other)] == count);
            hits += one == other ? static_cast<double>(count) : 0;
        }
    }
    CHECK(found.macro_f1 == doctest::Approx(test::naive_f1(truth, guess, 13)).epsilon(1e-12));
    CHECK(found.accuracy == hits / 1000);
    CHECK(std::accumulate(found.confusion.begin(), found.confusion.end(), std::int64_t{0}) == 1000);
}

TEST_CASE("recall is the share of a class's samples with a correct guess, and NaN without samples") {
    const Classification found = classify({8, truths, guesses, places});

    CHECK(found.class_samples == std::vector<std::int64_t>{3, 2, 4, 0, 2, 0, 1, 0});
    for (const std::size_t empty : {3, 5, 7}) {
        CHECK(std::isnan(found.recall[empty]));
    }
    CHECK(found.recall[0] == doctest::Approx(2.0 / 3));
    CHECK(found.recall[1] == 0.5);
    CHECK(found.recall[2] == 0.75);
    CHECK(found.recall[6] == 0);
    CHECK(confusion_text(found).find("      3  0  0  0  0  0  0  0  0       0       -\n") != std::string::npos);
}

TEST_CASE("the calibration error is the mean difference between scores and accuracy in 15 bins") {
    // 0.9 and 0.92 are in the bin (13/15, 14/15], 0.95 and 1 in the last bin, 0.55 in (8/15, 9/15], 0.65 in the next.
    const Classes truth{0, 1, 1, 0, 1, 0};
    const Classes guess{0, 0, 1, 0, 1, 0};
    const std::vector<float> scores{0.9F, 0.1F, 0.92F, 0.08F, 0.45F, 0.55F, 0.65F, 0.35F, 0, 1, 0.95F, 0.05F};

    const Classification found = classify({2, truth, guess, Classes(6), {}, scores});

    const double expected =
        2.0 / 6 * std::abs(0.5 - 0.91) + 2.0 / 6 * (1 - 0.975) + 1.0 / 6 * (1 - 0.55) + 1.0 / 6 * (1 - 0.65);
    REQUIRE(found.calibration_error);
    CHECK(*found.calibration_error == doctest::Approx(expected).epsilon(1e-6));
    CHECK(calibration_text(found) == "expected calibration error 0.2783 (15 bins of equal width, Guo et al. 2017)\n");
    CHECK_FALSE(classify({2, truth, guess, Classes(6)}).calibration_error);
    CHECK(calibration_text(classify({2, truth, guess, Classes(6)})).empty());
}

TEST_CASE("figures_text gives one line; confusion_text gives a matrix, or a list for many classes") {
    const Classification found = classify({8, truths, guesses, places});

    CHECK(figures_text(found) == "accuracy 58.33 %, top 5 83.33 %, macro F1 0.4147");
    CHECK(figures_text(classify({2, Classes{0, 1}, Classes{0, 1}, Classes{0, 0}})) ==
          "accuracy 100.00 %, macro F1 1.0000");
    CHECK(confusion_text(classify({2, Classes{0, 1, 1}, Classes{0, 1, 0}, Classes{0, 0, 1}})) ==
          "confusion matrix: a row for each true class, a column for each guess\n"
          "  truth  0  1  images  recall\n"
          "      0  1  0       1  1.0000\n"
          "      1  1  1       2  0.5000\n");
    const std::vector<std::string> names{"a cat", "größe"};
    CHECK(confusion_text(classify({2, Classes{0, 1, 1}, Classes{0, 1, 0}, Classes{0, 0, 1}, names})) ==
          "confusion matrix: a row for each true class, a column for each guess\n"
          "  truth    0  1  images  recall\n"
          "  0 a cat  1  0       1  1.0000\n"
          "  1 größe  1  1       2  0.5000\n");
    CHECK(confusion_text(found, 2) ==
          "the lowest recall of 8 classes\n"
          "  class  images  recall\n"
          "      6       1  0.0000\n"
          "      1       2  0.5000\n"
          "the commonest confusions of 8 classes\n"
          "  truth  guess  samples  share of the class\n"
          "      0      1        1              0.3333\n"
          "      1      2        1              0.5000\n");
}
