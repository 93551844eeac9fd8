#include "finch/evaluate/report_line.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace finch::evaluate;
using Kind = ReportLine::Kind;

TEST_CASE("a report line contains names and numbers, as name=number words or as a JSON object") {
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

TEST_CASE("checkpoint names a folder and is no metric") {
    for (const char* text : {"finch loss=0.31 checkpoint=epoch-3 epoch=3",
                             R"(finch {"loss": 0.31, "checkpoint": "epoch-3", "epoch": 3})"}) {
        CAPTURE(text);
        const auto line = read_report_line(text);
        CHECK(line->checkpoint == "epoch-3");
        CHECK(line->values.size() == 2);
    }
    CHECK(read_report_line("finch loss=0.31 checkpoint=3")->checkpoint == "3");
    CHECK(read_report_line(R"(finch {"loss": 0.31, "checkpoint": 3})")->checkpoint == "3");
    for (const char* text : {"finch loss=0.31", R"(finch {"loss": 0.31, "checkpoint": null})",
                             R"(finch {"loss": 0.31, "more": {"checkpoint": "epoch-3"}})"}) {
        CAPTURE(text);
        CHECK(read_report_line(text)->checkpoint.empty());
    }
}

TEST_CASE("NaN and infinite values are accepted as numbers") {
    CHECK(std::isnan(*read_report_line("finch loss=nan")->value("loss")));
    for (const char* number : {"NaN", "nan", "-nan", "-NaN"}) {
        CHECK(std::isnan(*read_report_line(std::string(R"(finch {"loss": )") + number + "}")->value("loss")));
    }
    for (const char* number : {"inf", "Inf", "Infinity", "1e999", "+inf"}) {
        CHECK(read_report_line(std::string(R"(finch {"loss": )") + number + "}")->value("loss") == INFINITY);
    }
    CHECK(read_report_line(R"(finch {"loss": -1e999})")->value("loss") == -INFINITY);
    CHECK(std::isinf(*read_report_line("finch loss=-inf")->value("loss")));
    CHECK(std::isinf(*read_report_line("finch loss=1e999")->value("loss")));
}

TEST_CASE("every notation of zero gives 0, and other numbers give the nearest double") {
    const auto loss = [](const std::string& number) {
        const auto words = read_report_line("finch loss=" + number)->value("loss");
        CHECK(read_report_line(R"(finch {"loss": )" + number + "}")->value("loss") == words);
        return words;
    };
    for (const std::string& zero :
         {std::string("0"), std::string("-0"), std::string("0e308"), std::string("0.0E+5"), "0." + std::string(60, '0'),
          std::string("0.0e-310"), "0." + std::string(25, '0') + "e-300"}) {
        CAPTURE(zero);
        CHECK(loss(zero) == 0);
    }
    CHECK(loss("0.1000000000000000055511151231257827") == 0.1);
    CHECK(loss("123456789012345678901234567890") == 123456789012345678901234567890.0);
    CHECK(loss("5e-324") == 5e-324);
    CHECK(loss("-18446744073709551616") == -18446744073709551616.0);
}

TEST_CASE("terminal escape sequences (colours, cursor moves, titles) are removed from a line") {
    for (const char* text : {"\x1b[32mfinch\x1b[0m loss=\x1b[1;31m0.5\x1b[m", "\x1b[2K\x1b[1Gfinch loss=0.5\x1b[K",
                             "\x1b]0;training\afinch loss=0.5", "\x1b]0;a\x1b\\finch loss=0.5\x1b(B\x1b[m\x1b"}) {
        CAPTURE(text);
        const auto line = read_report_line(text);
        REQUIRE(line);
        CHECK(line->value("loss") == 0.5);
        CHECK(line->text == "finch loss=0.5");
    }
}

TEST_CASE("unrelated lines are ignored, and invalid report lines are classified as problem") {
    for (const char* text : {"loss=1", " finch loss=1", "INFO: finch loss=1", "100%|##|finch loss=1", "Finch loss=1",
                             "finch loss = 1", "finch loss: 1", "finch: loss=1", "[finch] done 0.0.1"}) {
        CAPTURE(text);
        CHECK_FALSE(read_report_line(text));
    }
    CHECK(read_report_line("finch stop?")->kind == Kind::question);
    CHECK(read_report_line("finch done")->kind == Kind::done);
    CHECK(read_report_line("finch done 0.1.2")->id == "0.1.2");
    CHECK_FALSE(read_report_line("finch is loading"));
    CHECK(read_report_line("finch loss=1 " + std::string(1000, 'x'))->text.size() == 200);
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

TEST_CASE("values that are invalid, too long or too many are dropped without error; the last of equal names counts") {
    const auto words = read_report_line("finch loss=1 note=fine a=1\ta=2 loss=3 " + std::string(65, 'x') + "=1");
    REQUIRE(words->kind == Kind::report);
    CHECK(words->values == std::vector<std::pair<std::string, double>>{{"loss", 3}, {"a", 2}});

    const auto object = read_report_line(
        R"(finch {"a": null, "b": true, "c": [1, {"d": "},"}], "e": {"f": 1}, "g,h": 2, "\u00fcn\u00ef \ud83d\ude00\"": 3, "loss": -Infinity, "t": "x\",y"})");
    REQUIRE_MESSAGE(object->kind == Kind::report, object->problem);
    CHECK(object->values == std::vector<std::pair<std::string, double>>{
                                {"g,h", 2}, {"\u00fcn\u00ef_\U0001F600_", 3}, {"loss", -INFINITY}});

    for (const char* side : {R"("x": nan)", R"("x": 1e999)", R"("u": "\ud800")", R"("u": "\ud800\ud800\udc00 \udc00")",
                             R"("u": "\\\" nan")", R"("\ud83d": 1)", R"("x": [nan, -inf])"}) {
        CAPTURE(side);
        const auto line = read_report_line(std::string("finch {\"loss\": 0.3, ") + side + ", \"y\": 2}");
        REQUIRE_MESSAGE(line->kind == Kind::report, line->problem);
        CHECK(line->value("loss") == 0.3);
        CHECK(line->value("y") == 2);
    }

    std::string many = "finch";
    for (int i = 0; i < 150; ++i) {
        many += " v" + std::to_string(i) + "=" + std::to_string(i);
    }
    const auto full = read_report_line(many + " loss=5");
    CHECK(full->values.size() == 101);
    CHECK(full->value("loss") == 5);

    for (const char* text :
         {R"(finch {"loss": null})", R"(finch {"loss": "1"})", R"(finch {"loss": 1} 2)", R"(finch {"loss" 1})",
          R"(finch {"loss": 1 "a": 2})", R"(finch {"loss": 1, "a)", R"(finch {"loss": 1, "a": "b)"}) {
        CAPTURE(text);
        CHECK(read_report_line(text)->kind == Kind::problem);
    }
    const auto cut = read_report_line("finch loss=" + std::string(63, 'x') + "\u00fc");
    CHECK(cut->problem.find('\xC3') == std::string::npos);
}
