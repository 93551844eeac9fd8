#include "finch/report/csv.hpp"

#include "store/samples.hpp"

#include <bit>
#include <cstdlib>
#include <doctest/doctest.h>
#include <sstream>

using namespace finch;

namespace {

store::Recovered one_individual(const search::Individual& individual) {
    store::Recovered recovered;
    recovered.space = store::samples::mnist_space();
    recovered.records.emplace_back(search::Result{individual});
    return recovered;
}

search::Individual plain() {
    search::Individual individual;
    individual.id = search::Id::make(1, 2, 3);
    individual.genome = {6, 2, 0.1 + 0.2, 0.75};
    individual.outcome = search::Outcome::evaluated;
    individual.loss = 1.0 / 3;
    individual.parents = {search::Id::make(0, 0, 9), search::Id{}};
    individual.node = "n01";
    return individual;
}

std::vector<std::string> cells(const std::string& line) {
    std::vector<std::string> found;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) {
        found.push_back(cell);
    }
    return found;
}

}  // namespace

TEST_CASE("csv: a row has named gene columns, choices as words, exact numbers, and nothing for an inactive gene") {
    store::Recovered recovered = one_individual(plain());
    recovered.space.genes.at(3).when = {{.gene = 1, .values = {0}}};  // gamma is for relu

    const std::string text = report::csv(recovered, {.measure = {"error", "validation error"}});
    const std::string head = text.substr(0, text.find('\n'));
    const auto names = cells(head);
    const auto row = cells(text.substr(head.size() + 1));
    const auto value = [&](const std::string& name) {
        return row.at(static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
    };

    CHECK(value("id") == "1.2.3");
    CHECK(value("conv_layers") == "6");
    CHECK(value("activation") == "tanh");
    CHECK(value("gamma").empty());
    CHECK(std::strtod(value("lr").c_str(), nullptr) == 0.1 + 0.2);
    CHECK(std::strtod(value("loss").c_str(), nullptr) == 1.0 / 3);
    CHECK(value("loss.measure") == "validation error");
    CHECK(value("accuracy") == "nan");
    CHECK(value("outcome") == "evaluated");
    CHECK(value("parent_1") == "0.0.9");
    CHECK(value("parent_2").empty());
    CHECK(value("node") == "n01");
}

TEST_CASE("csv: texts with commas, quotes and line breaks are quoted according to RFC 4180") {
    search::Individual individual = plain();
    individual.problem = "rank 3: \"no memory\",\nreally";

    const std::string text = report::csv(one_individual(individual), {search::ExchangeKind::none});

    CHECK(text.find(",\"rank 3: \"\"no memory\"\",\nreally\"\n") != std::string::npos);
}

TEST_CASE("csv: the last columns are the metrics of the best epoch, one column per metric name in the run") {
    search::Individual one = plain();
    one.best_epoch = 2;
    one.metrics = {{1, "top5", 0.5}, {2, "top5", 0.25}, {1, "f1", 0.125}};
    search::Individual other = plain();
    other.id = search::Id::make(1, 2, 4);
    store::Recovered recovered = one_individual(one);
    recovered.records.emplace_back(search::Result{other});

    const std::string text = report::csv(recovered, {search::ExchangeKind::none});

    CHECK(text.find(",problem,metric.f1,metric.top5\n") != std::string::npos);
    CHECK(text.find(",nan,0.25\n") != std::string::npos);
    CHECK(text.find(",nan,nan\n") != std::string::npos);
}

TEST_CASE("csv: NaN is never written as -nan, and an individual with several records has one row") {
    search::Individual individual = plain();
    individual.loss = store::samples::strange_nan();
    store::Recovered recovered = one_individual(individual);
    recovered.records.push_back(recovered.records.front());
    recovered.records.emplace_back(search::Copy{individual, 0});

    const std::string text = report::csv(recovered, {search::ExchangeKind::none});

    CHECK(std::count(text.begin(), text.end(), '\n') == 2);
    CHECK(text.find("-nan") == std::string::npos);
}

TEST_CASE("csv: with pollination, a row lists all islands on which the individual is active") {
    search::Individual better = plain();
    search::Individual worse = plain();
    worse.id = search::Id::make(1, 2, 4);
    worse.island = 1;
    worse.loss = 2;
    store::Recovered recovered = one_individual(better);
    recovered.facts.islands = 2;
    recovered.records.emplace_back(search::Result{worse});
    recovered.records.emplace_back(search::Copy{better, 1});

    const std::string text = report::csv(recovered, {search::ExchangeKind::pollination});

    CHECK(text.find(",0,0 1,0,0.0.9,") != std::string::npos);
    CHECK(text.find(",1,,0,0.0.9,") != std::string::npos);
}
