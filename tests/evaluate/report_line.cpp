#include "finch/evaluate/report_line.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace finch::evaluate;
using Kind = ReportLine::Kind;

TEST_CASE("a line of words or an object gives names with numbers") {
    for (const char* text :
         {"finch loss=0.31 epoch=3 accuracy=+9e-1", "finch   loss=0.31  epoch=3 accuracy=0.9 \r",
          R"(finch {"loss": 0.31, "epoch": 3, "accuracy": 0.9})", R"(finch {"loss":0.31,"epoch":3,"accuracy":0.9})"}) {
        CAPTURE(text);
        const auto line = read_report_line(text);
        REQUIRE(line);
        CHECK(line->kind == Kind::report);
        CHECK(line->value("loss") == 0.31);
        CHECK(line->value("epoch") == 3);
        CHECK(line->value("accuracy") == 0.9);
        CHECK_FALSE(line->value("other"));
    }
}

TEST_CASE("what is no number of a finite kind is still a number") {
    CHECK(std::isnan(*read_report_line("finch loss=nan")->value("loss")));
    CHECK(std::isnan(*read_report_line(R"(finch {"loss": NaN})")->value("loss")));
    CHECK(std::isinf(*read_report_line("finch loss=-inf")->value("loss")));
    CHECK(std::isinf(*read_report_line("finch loss=1e999")->value("loss")));
}

TEST_CASE("other lines are not for Finch, and what cannot be read is named") {
    CHECK_FALSE(read_report_line("loss=1"));
    CHECK_FALSE(read_report_line("finches loss=1"));
    CHECK_FALSE(read_report_line(" finch loss=1"));
    CHECK(read_report_line("finch stop?")->kind == Kind::question);
    CHECK(read_report_line("finch done")->kind == Kind::done);
    CHECK(read_report_line("finch done 0.1.2")->id == "0.1.2");
    CHECK_FALSE(read_report_line("finch is loading"));
    CHECK(read_report_line(R"(finch {"loss": 2, "note": "fine"})")->value("loss") == 2);
    CHECK(read_report_line("finch loss=1e-400")->value("loss") == 0);
    CHECK(read_report_line("finch loss=-1e999")->value("loss") == -INFINITY);
    for (const char* text : {"finch loss=abc", "finch loss=1 b", "finch =1", "finch loss=1x", "finch loss=", "finch {",
                             R"(finch {"loss": a})", R"(finch {loss: 1})", "finch loss=1 stop?", "finch loss=0x10"}) {
        CAPTURE(text);
        const auto line = read_report_line(text);
        REQUIRE(line);
        CHECK(line->kind == Kind::problem);
        CHECK_FALSE(line->problem.empty());
    }
}
