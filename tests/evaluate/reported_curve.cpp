#include "finch/evaluate/reported_curve.hpp"

#include "support/temporary_folder.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <fstream>

using namespace finch;
using namespace finch::evaluate;

namespace {

std::optional<std::string> add(ReportedCurve& curve, const std::string& text) {
    return curve.add(*read_report_line("finch " + text));
}

std::vector<std::int32_t> numbers(const ReportedCurve& curve) {
    std::vector<std::int32_t> found;
    for (const Epoch& epoch : curve.epochs()) {
        found.push_back(epoch.epoch);
    }
    return found;
}

}  // namespace

TEST_CASE("add: epochs count from 1 unless given; a repeated epoch replaces the old epoch and all later epochs") {
    ReportedCurve curve(3);
    CHECK_FALSE(add(curve, "loss=5"));
    CHECK_FALSE(add(curve, "loss=4 accuracy=0.5 training_loss=3 training_accuracy=0.25 learning_rate=0.1 seconds=7"));
    CHECK_FALSE(add(curve, "loss=3 epoch=4"));
    CHECK(numbers(curve) == std::vector<std::int32_t>{1, 2, 4});
    const Epoch second = curve.epochs()[1];
    CHECK(second.validation_loss == 4);
    CHECK(second.validation_accuracy == 0.5);
    CHECK(second.training_loss == 3);
    CHECK(second.training_accuracy == 0.25);
    CHECK(second.learning_rate == 0.1);
    CHECK(second.seconds == 7);
    CHECK(second.ranks == 3);
    CHECK(std::isnan(curve.epochs()[2].validation_accuracy));
    CHECK_FALSE(add(curve, "loss=9 epoch=2"));
    CHECK(numbers(curve) == std::vector<std::int32_t>{1, 2});
    CHECK(curve.losses() == std::vector<double>{5, 9});
    CHECK_FALSE(add(curve, "loss=6 epoch=7"));
    CHECK_FALSE(add(curve, "loss=1"));
    CHECK(numbers(curve) == std::vector<std::int32_t>{1, 2, 7, 8});
}

TEST_CASE("add: a report without a valid loss and epoch is refused, and the curve stays unchanged") {
    ReportedCurve curve;
    CHECK(add(curve, "accuracy=1") == "a report needs a loss, in 'finch accuracy=1'");
    CHECK(add(curve, "loss=x") == "'loss=x' is no number, in 'finch loss=x'");
    for (const char* epoch : {"0", "-1", "1.5", "nan", "1e10"}) {
        CHECK(add(curve, std::string("loss=1 epoch=") + epoch) ==
              std::string("epochs are whole numbers and count from 1, in 'finch loss=1 epoch=") + epoch + "'");
    }
    CHECK(curve.epochs().empty());
}

TEST_CASE("recall: restores kept reports bitwise and ignores a truncated last line") {
    const testing::TemporaryFolder folder;
    const auto path = folder.path() / "reports";
    ReportedCurve curve(2);
    for (const char* line :
         {"loss=0.1 accuracy=0.3333333333333333", "loss=nan", "loss=0.30000000000000004 seconds=2"}) {
        CHECK_FALSE(add(curve, line));
        CHECK(curve.keep(path));
    }
    std::ofstream(path, std::ios::app) << "finch epoch=4 loss=0.1 accura";
    ReportedCurve again(2);
    again.recall(path);
    REQUIRE(numbers(again) == numbers(curve));
    CHECK(again.epochs()[0].validation_accuracy == 0.3333333333333333);
    CHECK(std::isnan(again.losses()[1]));
    CHECK(again.losses()[2] == 0.30000000000000004);
    CHECK(again.epochs()[2].seconds == 2);
    CHECK_FALSE(add(again, "loss=7"));  // a report of a resumed program continues the count
    CHECK(numbers(again) == std::vector<std::int32_t>{1, 2, 3, 4});
    CHECK_FALSE(add(again, "loss=8 epoch=1"));  // a report of a restarted program replaces the curve
    CHECK(numbers(again) == std::vector<std::int32_t>{1});
    CHECK_FALSE(curve.keep(folder.path() / "no/such/folder"));
}

TEST_CASE("inherit: an heir's curve begins with the epochs of its ancestors, which its reports cannot replace") {
    const testing::TemporaryFolder folder;
    const auto path = folder.path() / "reports";
    ReportedCurve parent;
    for (const char* line : {"loss=0.30000000000000004 top5=0.1", "loss=2 seconds=3"}) {
        CHECK_FALSE(add(parent, line));
    }
    testing::put_contents(path, parent.text());

    ReportedCurve heir;
    heir.inherit(path);

    CHECK(heir.losses() == parent.losses());
    CHECK(heir.text() == parent.text());
    CHECK(heir.own_epochs() == 0);
    CHECK(heir.repeats_parent(*read_report_line("finch loss=2 epoch=2")));
    for (const char* other : {"finch loss=2", "finch loss=2 epoch=1", "finch loss=2 epoch=3", "finch epoch=2"}) {
        CHECK_FALSE(heir.repeats_parent(*read_report_line(other)));
    }
    CHECK(add(heir, "loss=1 epoch=2") ==
          "epochs up to 2 are those of its parent, whose checkpoint it must continue (FINCH_PARENT_CHECKPOINT_DIR), in "
          "'finch loss=1 epoch=2'");
    CHECK_FALSE(add(heir, "loss=1"));
    CHECK(numbers(heir) == std::vector<std::int32_t>{1, 2, 3});
    CHECK(heir.own_epochs() == 1);
}

TEST_CASE("repeats_parent: a report of epoch 1 with another loss is of a program that ignores its parent") {
    const testing::TemporaryFolder folder;
    testing::put_contents(folder / "reports", "ranks=1 finch epoch=1 loss=0.5 seconds=nan\n");
    ReportedCurve heir;
    heir.inherit(folder / "reports");
    CHECK(heir.repeats_parent(*read_report_line("finch loss=0.5 epoch=1")));
    CHECK_FALSE(heir.repeats_parent(*read_report_line("finch loss=0.6 epoch=1")));
}

TEST_CASE("recall: an epoch keeps its number of ranks, also beside a metric of this name") {
    const testing::TemporaryFolder folder;
    ReportedCurve parent(3);
    CHECK_FALSE(add(parent, "loss=1 ranks=8"));
    testing::put_contents(folder / "reports", parent.text() + "finch epoch=2 loss=0.5 seconds=nan\n");
    ReportedCurve heir(2);
    heir.inherit(folder / "reports");
    REQUIRE(heir.epochs().size() == 2);
    CHECK(heir.epochs()[0].ranks == 3);
    CHECK(heir.epochs()[1].ranks == 2);  // a line without a number is of an older Finch
    CHECK(heir.metrics().front().value == 8);
}

TEST_CASE("other names in a report are metrics, which are kept, recalled and replaced with their epoch") {
    const testing::TemporaryFolder folder;
    const auto path = folder.path() / "reports";
    ReportedCurve curve;
    for (const char* line :
         {"loss=1 top5=0.25 f1=nan", "{\"loss\": 2, \"val loss=\": 0.1}", "loss=3 epoch=2 top5=0.30000000000000004"}) {
        CHECK_FALSE(add(curve, line));
        CHECK(curve.keep(path));
    }
    ReportedCurve again;
    again.recall(path);
    for (const ReportedCurve& one : {curve, again}) {
        REQUIRE(one.metrics().size() == 3);
        CHECK(one.metrics()[0].name == "top5");
        CHECK(one.metrics()[0].epoch == 1);
        CHECK(one.metrics()[0].value == 0.25);
        CHECK(one.metrics()[1].name == "f1");
        CHECK(std::isnan(one.metrics()[1].value));
        CHECK(one.metrics()[2].name == "top5");
        CHECK(one.metrics()[2].epoch == 2);
        CHECK(one.metrics()[2].value == 0.30000000000000004);
    }
    CHECK_FALSE(add(curve, "{\"loss\": 2, \"val loss=\": 0.1}"));
    CHECK(curve.metrics().back().name == "val_loss_");
}
