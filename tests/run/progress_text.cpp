// Tests the progress line and the lines of results with given data.
#include "finch/run/progress_text.hpp"

#include "finch/base/words.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::run;

namespace {

constexpr Terminal wide{.can_rewrite = true, .has_unicode = true, .columns = 110};
constexpr Terminal ascii{.can_rewrite = true, .columns = 110};
constexpr Terminal batch_log{};

Terminal of_width(int columns) {
    Terminal terminal = wide;
    terminal.columns = columns;
    return terminal;
}

ProgressFacts middle() {
    return {.finished = 17,
            .evaluations = 200,
            .used = 0.5,
            .measure = "error",
            .best = 0.20461,
            .failures = "3 failed",
            .left = Estimate{30 * 60, 34 * 60, 40 * 60},
            .running = 2};
}

bool is_ascii(const std::string& text) {
    return text.find_first_not_of(
               " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopq"
               "rstuvwxyz{|}~") == std::string::npos;
}

search::Space three_genes() {
    search::Space space;
    space.genes.push_back({.name = "channels", .kind = search::IntGene{.low = 4, .high = 12}});
    space.genes.push_back({.name = "learning_rate", .kind = search::RealGene{.low = 0, .high = 1}});
    space.genes.push_back({.name = "momentum_of_the_optimizer", .kind = search::RealGene{.low = 0, .high = 1}});
    return space;
}

search::Individual trained() {
    search::Individual one;
    one.id = search::Id::make(0, 0, 17);
    one.outcome = search::Outcome::evaluated;
    one.loss = 0.15836;
    one.accuracy = 0.9475;
    one.epochs = 5;
    one.training_seconds = 18;
    one.genome = {9, 0.009283, 0.75};
    return one;
}

}  // namespace

TEST_CASE("progress_text: a terminal shows a bar, the count, the best, the failures and a range of the time left") {
    CHECK(progress_text(middle(), wide) == "████████░░░░░░░░ 17/200 · best error 0.20461 · 3 failed · 30–40 min left");
    CHECK(progress_text(middle(), ascii) == "[########--------] 17/200, best error 0.20461, 3 failed, 30-40 min left");
}

TEST_CASE("progress_text: a log line has the same content without a bar") {
    CHECK(progress_text(middle(), batch_log) == "17/200, best error 0.20461, 3 failed, 30-40 min left");
}

TEST_CASE("progress_text: a new best has a star on a terminal with Unicode, and the word new elsewhere") {
    ProgressFacts facts = middle();
    facts.is_new_best = true;
    CHECK(progress_text(facts, wide).find("· best error 0.20461 ★ ·") != std::string::npos);
    CHECK(progress_text(facts, ascii).find(", new best error 0.20461,") != std::string::npos);
    Terminal utf8_log;
    utf8_log.has_unicode = true;
    CHECK(progress_text(facts, utf8_log) == "17/200 · new best error 0.20461 · 3 failed · 30–40 min left");
}

TEST_CASE("progress_text: before the first result, the epochs of the running trainings replace best and time left") {
    ProgressFacts facts{.evaluations = 40, .used = 0.0, .running = 2, .trainings = {{2, 8}, {1, 8}}};
    CHECK(progress_text(facts, wide) == "░░░░░░░░░░░░░░░░ 0/40 · 2 running, epoch 3/8, 2/8");
    facts.trainings = {{8, 8}, {3, 0}};
    CHECK(progress_text(facts, batch_log) == "0/40, 2 running, epoch 8/8, 3");
    facts.trainings = {{0, 0}, {0, 0}};
    CHECK(progress_text(facts, batch_log) == "0/40, 2 running");
    facts.trainings = std::vector<TrainingProgress>(9, {0, 5});
    facts.running = 9;
    CHECK(progress_text(facts, batch_log) == "0/40, 9 running, epoch 1/5, 1/5, 1/5, 1/5, ...");
    facts.running = 0;
    CHECK(progress_text(facts, batch_log) == "0/40");
}

TEST_CASE("progress_text: failures without any result are counted") {
    const ProgressFacts facts{
        .finished = 4, .evaluations = 40, .used = 0.1, .failures = "1 out_of_memory, 3 failed", .running = 2};
    CHECK(progress_text(facts, batch_log) == "4/40, 1 out_of_memory, 3 failed, 2 running");
}

TEST_CASE("progress_text: budgets of epochs and hours, and no budget") {
    ProgressFacts facts{.finished = 1, .epochs = 30, .budget_epochs = 400, .used = 0.075, .best = 1.5};
    CHECK(progress_text(facts, batch_log) == "1 evaluation, 30/400 epochs, best loss 1.5");
    facts.budget_epochs.reset();
    facts.left = Estimate{7200, 7200, 7200};
    CHECK(progress_text(facts, batch_log) == "1 evaluation, best loss 1.5, about 2 h left");
    facts.used.reset();
    facts.left.reset();
    CHECK(progress_text(facts, wide) == "1 evaluation · best loss 1.5");
}

TEST_CASE("progress_text: fits every terminal, and leaves out the bar first, then the name of the measure") {
    for (int columns = 1; columns <= 130; ++columns) {
        CAPTURE(columns);
        CHECK(characters_in(progress_text(middle(), of_width(columns))) <
              static_cast<std::size_t>(std::max(2, columns)));
        Terminal narrow = ascii;
        narrow.columns = columns;
        CHECK(is_ascii(progress_text(middle(), narrow)));
    }
    CHECK(progress_text(middle(), of_width(70)) == "████░░░░ 17/200 · best error 0.20461 · 3 failed · 30–40 min left");
    CHECK(progress_text(middle(), of_width(60)) == "17/200 · best error 0.20461 · 3 failed · 30–40 min left");
    CHECK(progress_text(middle(), of_width(51)) == "17/200 · best 0.20461 · 3 failed · 30–40 min left");
    CHECK(progress_text(middle(), of_width(20)) == "17/200 · best 0.20…");
}

TEST_CASE("range_text: rounds outwards, in a unit that suits the upper end") {
    const auto text = [](double low, double high) { return range_text({low, low, high}, batch_log); };
    CHECK(text(12.4, 40.2) == "12-41 s");
    CHECK(text(0, 8) == "at most 8 s");
    CHECK(text(0, 0) == "at most 1 s");
    CHECK(text(20, 20) == "about 20 s");
    CHECK(text(20.5, 20.6) == "about 21 s");
    CHECK(text(1.5, 1.6) == "1-2 s");
    CHECK(text(98, 111) == "98-111 s");
    CHECK(text(59, 200) == "at most 4 min");
    CHECK(text(110, 200) == "1-4 min");
    CHECK(text(30 * 60, 40 * 60) == "30-40 min");
    CHECK(text(1.5 * 3600, 3.01 * 3600) == "1.5-3.1 h");
    CHECK(text(20 * 3600, 31 * 3600) == "20-31 h");
    CHECK(text(2.5 * 86400, 3 * 86400) == "2.5-3 d");
    CHECK(text(90 * 86400, 200 * 86400) == "90-200 d");
}

TEST_CASE("result_text: a line fits 110 columns with its prefix, or the terminal; the genes are cut") {
    const search::Space space = three_genes();
    const ResultLine line{.space = space, .prefix = 22};
    CHECK(result_text(trained(), line, batch_log) ==
          "0.0.17: loss 0.15836, accuracy 94.75 %, 5 epochs in 18 s [channels = 9, learning_rat...]");
    CHECK(22 + result_text(trained(), line, batch_log).size() == 110);
    for (int columns = 40; columns <= 140; ++columns) {
        CAPTURE(columns);
        CHECK(11 + characters_in(result_text(trained(), {.space = space, .prefix = 11}, of_width(columns))) <=
              static_cast<std::size_t>(std::min(110, columns)));
    }
    CHECK(result_text(trained(), {.space = space, .prefix = 11}, of_width(80)) ==
          "0.0.17: loss 0.15836, accuracy 94.75 %, 5 epochs in 18 s");
}

TEST_CASE("result_text: marks a new best with a star on a terminal with Unicode, and with words elsewhere") {
    const search::Space space;
    search::Individual one = trained();
    one.genome = {};
    const ResultLine line{.space = space, .is_new_best = true, .more = 3, .prefix = 22};
    CHECK(result_text(one, line, wide) == "0.0.17: loss 0.15836 ★, accuracy 94.75 %, 5 epochs in 18 s (and 3 more)");
    CHECK(result_text(one, line, ascii) ==
          "0.0.17: new best loss 0.15836, accuracy 94.75 %, 5 epochs in 18 s (and 3 more)");
    CHECK(result_text(one, line, batch_log) == result_text(one, line, ascii));
}

TEST_CASE("on_one_row: cuts a line on a terminal only") {
    CHECK(on_one_row("0123456789", 4, of_width(10)) == "01234…");
    CHECK(on_one_row("0123456789", 4, of_width(3)).empty());
    CHECK(on_one_row("0123456789", 4, of_width(14)) == "0123456789");
    Terminal narrow_log;
    narrow_log.columns = 10;
    CHECK(on_one_row("0123456789", 4, narrow_log) == "0123456789");
}

TEST_CASE("result_text: an error rate is not repeated as an accuracy; outcomes, repeats and reused results are named") {
    const search::Space space;
    search::Individual one = trained();
    one.genome = {};
    CHECK(result_text(one, {.space = space, .measure = "error", .is_rate = true}, batch_log) ==
          "0.0.17: error 0.15836, 5 epochs in 18 s");
    one.outcome = search::Outcome::pruned;
    CHECK(result_text(one, {.space = space, .measure = "error", .is_rate = true}, batch_log) ==
          "0.0.17: pruned, error 0.15836, 5 epochs in 18 s");
    one.bred_by = search::Operator::repeat;
    one.parents[0] = search::Id::make(0, 0, 3);
    one.outcome = search::Outcome::evaluated;
    CHECK(result_text(one, {.space = space, .is_rate = true}, batch_log) ==
          "0.0.17 repeats 0.0.3: loss 0.15836, 5 epochs in 18 s");
    one.bred_by = search::Operator::random;
    one.reused_from = search::Id::make(0, 1, 4);
    one.reused_run = 7;
    CHECK(result_text(one, {.space = space, .is_rate = true}, batch_log) ==
          "0.0.17: loss 0.15836, as 0.1.4 of another run");
}

TEST_CASE("result_text: a log keeps the reason of a failure; a terminal shows its most informative part, cut") {
    const search::Space space = three_genes();
    search::Individual one = trained();
    one.outcome = search::Outcome::failed;
    one.loss = one.accuracy = search::Individual::not_measured;
    one.epochs = 0;
    one.problem =
        "exit code 1: Traceback (most recent call last):\n  open()\nFileNotFoundError: [Errno 2] No such file "
        "or directory: 'a/rather/long/path/of/a/file/that/is/not/there.h5'";
    const ResultLine line{.space = space, .prefix = 11};
    CHECK(result_text(one, line, batch_log) ==
          "0.0.17: failed: exit code 1: FileNotFoundError: [Errno 2] No such file or directory: "
          "'a/rather/long/path/of/a/file/that/is/not/there.h5'");
    CHECK(result_text(one, line, wide) ==
          "0.0.17: failed: FileNotFoundError: [Errno 2] No such file or directory: 'a/rather/long/path/of/a/f…");
    one.epochs = 2;
    one.loss = 1.4;  // the loss of a failure is not a result
    one.problem = "no memory";
    CHECK(result_text(one, line, wide) ==
          "0.0.17: failed: no memory [channels = 9, learning_rate = 0.009283, momentum_of_the_optimizer = 0.…]");
}
