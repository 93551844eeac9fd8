#include "finch/report/comparison.hpp"

#include "finch/report/tables.hpp"

#include "store/samples.hpp"

#include <array>
#include <doctest/doctest.h>
#include <sstream>

using namespace finch;

namespace {

search::Individual ended(std::uint32_t number, double finished, double loss) {
    search::Individual one;
    one.id = search::Id::make(0, 0, number);
    one.genome = {4, 0, 0.001, 0.5};
    one.outcome = search::Outcome::evaluated;
    one.loss = loss;
    one.finished = finished;
    return one;
}

/// Two starts on 1 and on 3 nodes, 100 s each, with 1000 s in between.
store::Recovered run_of(const std::vector<search::Individual>& individuals) {
    store::Recovered recovered;
    recovered.space = store::samples::mnist_space();
    recovered.facts.starts = {{.restart = 0, .workers = 1, .nodes = 1, .began = 5000, .seconds = 100},
                              {.restart = 1, .workers = 3, .nodes = 3, .began = 6100, .seconds = 100}};
    for (const search::Individual& one : individuals) {
        recovered.records.emplace_back(search::Result{one});
    }
    return recovered;
}

/// The row that begins with `title`, without it, its cells apart by two spaces and more.
std::string row(const std::string& table, const std::string& title) {
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) {
        if (line.find(title) == 2) {
            std::string cells;
            for (std::size_t at = 2 + title.size(); at < line.size(); ++at) {
                const bool gap = line.compare(at, 2, "  ") == 0;
                cells += gap && !cells.ends_with('|')                       ? "|"
                         : gap || (line[at] == ' ' && cells.ends_with('|')) ? ""
                                                                            : line.substr(at, 1);
            }
            return cells;
        }
    }
    return "";
}

}  // namespace

TEST_CASE("comparison: results side by side, and what each took to be as good as the worse of the two") {
    const auto one = run_of({ended(1, 5010, 3), ended(2, 5050, 2), ended(3, 6150, 0.5)});
    const auto other = run_of({ended(1, 5020, 4), ended(2, 6110, 1)});
    const std::array runs{report::Compared{"a", one, one.space}, report::Compared{"b", other, other.space}};
    const std::string table = report::comparison_table(runs);
    CHECK(row(table, "evaluations") == "|3|2");
    CHECK(row(table, "best loss") == "|0.5|1");
    CHECK(row(table, "its id") == "|0.0.3|0.0.2");
    CHECK(row(table, "ran for") == "|3 min 20 s|3 min 20 s");
    CHECK(row(table, "node-hours") == "|0.111111|0.111111");  // (100 + 3 · 100) / 3600
    CHECK(row(table, "until loss 1") == "|3 evaluations, 2 min 30 s|2 evaluations, 1 min 50 s");
    CHECK(table.find("evaluations   3   ") != std::string::npos);  // to the left, as words stand
}

TEST_CASE("comparison: a run without a result yet") {
    const auto one = run_of({ended(1, 5010, 3)});
    const auto none = run_of({});
    const std::array runs{report::Compared{"a", one, one.space}, report::Compared{"b", none, none.space}};
    const std::string table = report::comparison_table(runs);
    CHECK(row(table, "best loss") == "|3|-");
    CHECK(row(table, "its id") == "|0.0.1|-");
}

TEST_CASE(
    "comparison: of runs that minimise different things each best has its name, and no run is said to be as good") {
    const auto one = run_of({ended(1, 5010, 3)});
    const auto other = run_of({ended(1, 5020, 0.25)});
    const report::Competition errors{.measure = {.name = "error", .title = "validation error (share of images)"}};
    const std::array runs{report::Compared{"a", one, one.space}, report::Compared{"b", other, other.space, errors}};

    const std::string table = report::comparison_table(runs);

    CHECK(row(table, "minimises") == "|loss|validation error (share of images)");
    CHECK(row(table, "best") == "|loss 3|error 0.25");
    CHECK(table.find("until") == std::string::npos);
}

TEST_CASE("training table: what each worker trains, in the workers' order") {
    search::Population population(search::ExchangeKind::none, 1);
    for (const std::uint32_t number : {1U, 2U, 3U}) {
        search::Individual one = ended(number, 0, 0);
        one.outcome = search::Outcome::unfinished;
        one.started = 1000;
        one.attempt.worker = number == 3 ? -1 : static_cast<std::int32_t>(4 - number);
        population.merge(one);
    }
    const std::string text = report::training_table(store::samples::mnist_space(), population, 1065, 20);
    CHECK(text.find("2 in training\n") == 0);
    CHECK(text.find("0.0.2") < text.find("0.0.1"));
    CHECK(text.find("1 min 05 s") != std::string::npos);
    CHECK(text.find("0.0.3") == std::string::npos);
    CHECK(report::training_table(store::samples::mnist_space(), population, 1065, 1)
              .find("2 in training, the first 1\n") == 0);
}
