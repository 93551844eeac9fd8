#include "finch/app/follow.hpp"

#include "finch/base/words.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <sstream>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::app;

namespace {

constexpr double began = 1e9;
constexpr Terminal large{.can_rewrite = true, .has_unicode = true, .columns = 110, .rows = 40};

/// A search of two workers with `evaluated` results of ten seconds each, of which `failed` gave none.
ReadRun running_search(std::uint32_t evaluated, std::uint32_t failed) {
    ReadRun run{.recovered = {},
                .config = config::parse("search: {space: {x: {real: [0, 1]}}, objective: {command: 'true'}, "
                                        "budget: {evaluations: 40}}",
                                        "test"),
                .competition = {}};
    run.recovered.space = run.config.space;
    run.recovered.facts.budget_evaluations = 40;
    run.recovered.facts.starts = {{.restart = 0, .workers = 2, .nodes = 1, .began = began}};
    for (std::uint32_t i = 0; i < evaluated; ++i) {
        search::Individual one;
        one.id = search::Id::make(0, i % 2, i / 2 + 1);
        one.attempt = {.restart = 0, .worker = static_cast<std::int32_t>(i % 2)};
        one.genome = {0.5};
        one.outcome = i < failed ? search::Outcome::failed : search::Outcome::evaluated;
        one.problem = i < failed ? "FileNotFoundError: no data" : "";
        one.loss = i < failed ? search::Individual::not_measured : 1.0 / (i + 1);
        one.born = one.started = began + 10 * (i / 2);
        one.finished = one.started + 10;
        run.recovered.individuals.push_back(one);
    }
    return run;
}

report::Status status_of(const ReadRun& run) {
    report::Status status;
    status.state = RunState::running;
    status.run = "runs/a";
    status.finished = run.recovered.individuals.size();
    status.budget_evaluations = 40;
    return status;
}

std::string text_of(const ReadRun& run, const Terminal& terminal) {
    return followed_text(run, status_of(run), {}, terminal, began + 5 * static_cast<double>(status_of(run).finished));
}

}  // namespace

TEST_CASE("followed_text: the best so far, the time left, the failures with their reason, and how to quit") {
    const std::string text = text_of(running_search(20, 2), large);
    CHECK(text.substr(0, text.find("\n\n")) ==
          "running: runs/a, 20 of 40 evaluations\n  best loss so far  █▆▅▄▃▃▃▂▂▂▂▂▁▁▁▁▁▁  from 0.3333 to 0.05\n"
          "  1–3 min left\n  2 failed: 2 × FileNotFoundError: no data");
    CHECK(text.ends_with("\n\nCtrl-C ends this view, not the run\n"));
}

TEST_CASE("followed_text: a run without results and failures shows neither") {
    const std::string text = text_of(running_search(0, 0), large);
    CHECK(text.find("running: runs/a, 0 of 40 evaluations\n\nbest of all") == 0);
    CHECK(text.find("left") == std::string::npos);
    CHECK(text_of(running_search(3, 3), large).find("\n  3 failed: 3 × FileNotFoundError: no data\n") !=
          std::string::npos);
}

TEST_CASE("followed_text: fits the terminal in both directions, without Unicode in ASCII sparklines") {
    for (int columns = 20; columns < 130; columns += 7) {
        for (int rows = 5; rows < 30; ++rows) {
            const Terminal terminal{.can_rewrite = true, .columns = columns, .rows = rows};
            const std::string text = text_of(running_search(20, 2), terminal);
            CAPTURE(columns);
            CAPTURE(rows);
            CHECK(std::count(text.begin(), text.end(), '\n') < rows);
            std::istringstream lines(text);
            for (std::string line; std::getline(lines, line);) {
                CHECK(characters_in(line) <= static_cast<std::size_t>(columns));
            }
            CHECK(text.find("Ctrl-C") != std::string::npos);
            CHECK(text.find("█") == std::string::npos);
        }
    }
}

TEST_CASE("followed_text: the end of a run is shown whole, without how to quit") {
    const ReadRun run = running_search(20, 0);
    report::Status status = status_of(run);
    status.state = RunState::complete;
    const std::string text = followed_text(run, status, {}, {.can_rewrite = true, .rows = 3}, began);
    CHECK(text.find("Ctrl-C") == std::string::npos);
    CHECK(text.find("workers") != std::string::npos);
    CHECK(text.find(" left") == std::string::npos);
}

TEST_CASE("with_bold_headings: bold are the lines that are not indented, on output with colours only") {
    CHECK(with_bold_headings("a\n  b\n", {.has_colours = true}) == "\033[1ma\033[0m\n  b\n");
    CHECK(with_bold_headings("a\n  b\n", {}) == "a\n  b\n");
}
