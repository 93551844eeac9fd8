#include "finch/report/export.hpp"

#include "store/samples.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <rapidjson/document.h>
#include <sstream>

using namespace finch;

namespace {

constexpr double noon = 1.7e9;

search::Individual trained(std::uint32_t worker, std::uint32_t sequence, double began, double seconds) {
    search::Individual one;
    one.id = search::Id::make(0, worker, sequence);
    one.genome = {6, 2, 0.1 + 0.2, 0.75};
    one.outcome = search::Outcome::evaluated;
    one.loss = 0.5 + sequence;
    one.epochs = 2;
    one.born = began;
    one.started = began;
    one.finished = began + seconds;
    one.attempt.worker = static_cast<std::int32_t>(worker);
    one.node = "n01";
    for (const int epoch : {1, 2}) {
        one.curve.push_back({.epoch = epoch, .validation_loss = 1.0 / epoch, .seconds = seconds / 2});
    }
    return one;
}

store::Recovered exported_run(const std::vector<search::Individual>& individuals) {
    store::Recovered recovered;
    recovered.space = store::samples::mnist_space();
    recovered.facts.starts = {{.restart = 0, .workers = 2, .nodes = 1, .began = noon, .seconds = 100}};
    recovered.facts.events = {{.time = noon + 1, .worker = 0, .kind = "stop", .text = "a \"quoted\" \x01 word"}};
    for (const search::Individual& one : individuals) {
        recovered.records.emplace_back(search::Result{one});
    }
    return recovered;
}

std::string exported(report::Format format, const store::Recovered& recovered, std::vector<search::Cost> costs = {}) {
    return report::exported(format, recovered, recovered.space,
                            {.exchange = search::ExchangeKind::none, .costs = std::move(costs)}, "a run");
}

rapidjson::Document json(const std::string& text) {
    rapidjson::Document document;
    document.Parse<rapidjson::kParseNanAndInfFlag | rapidjson::kParseFullPrecisionFlag>(text.c_str());
    REQUIRE_MESSAGE(!document.HasParseError(), text);
    return document;
}

/// Not ==: in C++ 20 RapidJSON's call themselves.
std::string text(const rapidjson::Value& value) {
    return value.GetString();
}

/// The lines of a journal with the number `record`.
std::vector<rapidjson::Document> records(const std::string& journal, int record) {
    std::vector<rapidjson::Document> found;
    std::istringstream lines(journal);
    for (std::string line; std::getline(lines, line);) {
        rapidjson::Document one = json(line);
        if (one["op_code"].GetInt() == record) {
            found.push_back(std::move(one));
        }
    }
    return found;
}

}  // namespace

TEST_CASE("trace: a slot is a lane, on which slices follow one another with the waiting in between") {
    // Worker 1 has two slots: 1 and 2 overlap, 3 comes after both.
    const auto recovered =
        exported_run({trained(1, 1, noon + 10, 20), trained(1, 2, noon + 15, 20), trained(1, 3, noon + 40, 5)});
    const auto document = json(exported(report::Format::trace, recovered));
    std::map<int, std::vector<std::string>> lanes;
    for (const auto& event : document["traceEvents"].GetArray()) {
        if (text(event["ph"]) == "X" && event["pid"].GetInt() == 2 &&
            std::string(event["cat"].GetString()) != "epoch") {
            lanes[event["tid"].GetInt()].push_back(event["name"].GetString() + std::string(" ") +
                                                   std::to_string(static_cast<int>(event["ts"].GetDouble() / 1e6)) +
                                                   "+" +
                                                   std::to_string(static_cast<int>(event["dur"].GetDouble() / 1e6)));
        }
    }
    CHECK(lanes.at(0) == std::vector<std::string>{"waiting 0+10", "0.1.1 10+20", "waiting 30+10", "0.1.3 40+5"});
    CHECK(lanes.at(1) == std::vector<std::string>{"waiting 0+15", "0.1.2 15+20"});
}

TEST_CASE("trace: epochs lie within an evaluation, and are left out where a stop was in between") {
    const auto count_epochs = [](const search::Individual& one) {
        const auto document = json(exported(report::Format::trace, exported_run({one})));
        int epochs = 0;
        for (const auto& event : document["traceEvents"].GetArray()) {
            epochs += event.HasMember("cat") && text(event["cat"]) == "epoch" ? 1 : 0;
        }
        return epochs;
    };
    search::Individual one = trained(0, 1, noon + 1, 8);
    CHECK(count_epochs(one) == 2);
    one.started = noon - 500;  // in an earlier start: here it took less than its epochs
    one.curve[0].seconds = 400;
    CHECK(count_epochs(one) == 0);
    one = trained(0, 1, noon + 1, 8);
    one.curve[1].seconds = std::numeric_limits<double>::quiet_NaN();  // of a program that does not say
    CHECK(count_epochs(one) == 0);
}

TEST_CASE("trace: an epoch has the run's measure under its name") {
    const auto recovered = exported_run({trained(0, 1, noon + 1, 8)});
    const search::Measure error{.name = "error", .title = "validation error", .of_epoch = [](const Epoch& epoch) {
                                    return 10.0 * epoch.epoch;
                                }};
    const auto document =
        json(report::exported(report::Format::trace, recovered, recovered.space, {.measure = error}, "a run"));
    std::vector<std::string> values;
    for (const auto& event : document["traceEvents"].GetArray()) {
        if (event.HasMember("cat") && text(event["cat"]) == "epoch") {
            CHECK_FALSE(event["args"].HasMember("validation_loss"));
            values.emplace_back(event["args"]["error"].GetString());
        }
    }
    CHECK(values == std::vector<std::string>{"10", "20"});
}

TEST_CASE("trace: words of any kind are no harm") {
    const auto document = json(exported(report::Format::trace, exported_run({trained(0, 1, noon, 1)})));
    bool found = false;
    for (const auto& event : document["traceEvents"].GetArray()) {
        found = found || (text(event["ph"]) == "i" && text(event["args"]["text"]) == "a \"quoted\" \x01 word");
    }
    CHECK(found);
}

TEST_CASE("optuna: a trial has its genes with their distributions, its curve, and its state") {
    search::Individual good = trained(0, 1, noon, 3);
    search::Individual pruned = trained(0, 2, noon, 1);
    pruned.outcome = search::Outcome::pruned;
    search::Individual lost = trained(0, 3, noon, 1);
    lost.outcome = search::Outcome::diverged;
    lost.loss = std::numeric_limits<double>::infinity();
    search::Individual open = trained(0, 4, noon, 1);
    open.outcome = search::Outcome::unfinished;
    open.parameters = 7;
    const std::string journal =
        exported(report::Format::optuna, exported_run({good, pruned, lost, open}), {search::Cost::parameters});

    const auto study = records(journal, 0);
    REQUIRE(study.size() == 1);
    CHECK(text(study[0]["study_name"]) == "a run");
    CHECK(study[0]["directions"].Size() == 2);
    CHECK(records(journal, 4).size() == 4);
    const auto genes = records(journal, 5);
    REQUIRE(genes.size() == 16);
    const auto layers = json(genes[0]["distribution"].GetString());
    CHECK(genes[0]["param_value_internal"].GetDouble() == 6);
    CHECK(text(layers["name"]) == "IntDistribution");
    CHECK(layers["attributes"]["low"].GetInt() == 2);
    CHECK(layers["attributes"]["high"].GetInt() == 10);
    const auto activation = json(genes[1]["distribution"].GetString());
    CHECK(text(activation["name"]) == "CategoricalDistribution");
    CHECK(activation["attributes"]["choices"].Size() == 3);
    CHECK(json(genes[2]["distribution"].GetString())["attributes"]["log"].GetBool());
    CHECK(genes[2]["param_value_internal"].GetDouble() == 0.1 + 0.2);
    CHECK(records(journal, 7).empty());  // of several objectives
    CHECK(records(exported(report::Format::optuna, exported_run({good, pruned, lost, open})), 7).size() == 8);
    const auto states = records(journal, 6);
    REQUIRE(states.size() == 3);
    CHECK(states[0]["state"].GetInt() == 1);
    CHECK(states[0]["values"][0].GetDouble() == good.loss);
    CHECK(states[1]["state"].GetInt() == 2);
    CHECK(states[2]["state"].GetInt() == 3);
    CHECK(states[2]["values"].IsNull());
    CHECK(text(states[0]["datetime_complete"]) == "2023-11-14T22:13:23.000000+00:00");
    for (const auto& attribute : records(journal, 8)) {
        CHECK(attribute["user_attr"].MemberCount() == 1);  // Optuna asserts it
    }
}

TEST_CASE("optuna: the metric has the measure's name, and intermediate values are of that measure or left out") {
    search::Individual one = trained(0, 1, noon, 3);
    one.curve[0].validation_accuracy = 0.25;
    one.curve[1].validation_accuracy = std::numeric_limits<double>::quiet_NaN();
    const search::Measure error{.name = "error",
                                .title = "validation error (share of images)",
                                .of_epoch = [](const Epoch& epoch) { return 1 - epoch.validation_accuracy; }};
    const auto recovered = exported_run({one});
    const auto journal = [&](std::vector<search::Cost> costs) {
        return report::exported(report::Format::optuna, recovered, recovered.space,
                                {.costs = std::move(costs), .measure = error}, "a run");
    };

    const auto values = records(journal({}), 7);
    const auto names = records(journal({search::Cost::seconds}), 3);

    REQUIRE(values.size() == 1);
    CHECK(values[0]["step"].GetInt() == 1);
    CHECK(values[0]["intermediate_value"].GetDouble() == 0.75);
    CHECK(records(journal({search::Cost::seconds}), 7).empty());
    REQUIRE(names.size() == 1);
    const auto& metrics = names[0]["system_attr"]["study:metric_names"];
    REQUIRE(metrics.Size() == 2);
    CHECK(text(metrics[0]) == "validation error (share of images)");
    CHECK(text(metrics[1]) == "seconds");
}

TEST_CASE("optuna: numbers among the options are numbers, and a range ends where its steps do") {
    auto recovered = exported_run({});
    const auto options = [](std::vector<std::string> words) { return search::ChoiceGene{std::move(words)}; };
    recovered.space.genes = {{"kernel", options({"3", "-5", "0.5", "2.0", "none", "true", "007", "9007199254740993"})},
                             {"version", options({"3.9", "3.10", "3.11"})},
                             {"odd", options({"1e3", "1e-3", ".5", "-0", "12345678901234567890123", "2.50", "inf"})},
                             {"equal", options({"1", "true", "false", "0"})},
                             {"ones", options({"1", "1.0", "2.5"})},
                             {"rate", search::RealGene{.low = 0.1, .high = 1, .step = 0.4}},
                             {"units", search::IntGene{.low = 1, .high = 10, .step = 4}},
                             {"wide", search::IntGene{.low = 1, .high = 10, .scale = search::Scale::log, .step = 4}},
                             {"any", search::RealGene{.low = 0.1, .high = 1}}};
    search::Individual one = trained(0, 1, noon, 3);
    one.genome = {0, 0, 0, 0, 0, 0.9, 9, 9, 1};
    recovered.records = {search::Result{one}};

    std::vector<std::string> found;
    for (const auto& gene : records(exported(report::Format::optuna, recovered), 5)) {
        const std::string distribution = text(gene["distribution"]);
        found.push_back(distribution.substr(distribution.find("attributes") + 12));
    }

    REQUIRE(found.size() == 9);
    CHECK(found[0] == R"({"choices":[3,-5,0.5,2.0,"none",true,"007",9007199254740993]}})");
    CHECK(found[1] == R"({"choices":[3.9,"3.10",3.11]}})");
    CHECK(found[2] == R"({"choices":["1e3","1e-3",".5","-0","12345678901234567890123","2.50","inf"]}})");
    CHECK(found[3] == R"({"choices":["1","true","false","0"]}})");
    CHECK(found[4] == R"({"choices":["1","1.0","2.5"]}})");
    CHECK(found[5] == R"({"log":false,"step":0.4,"low":0.1,"high":0.9}})");
    CHECK(found[6] == R"({"log":false,"step":4,"low":1,"high":9}})");
    CHECK(found[7] == R"({"log":true,"step":1,"low":1,"high":9}})");
    CHECK(found[8] == R"({"log":false,"step":null,"low":0.1,"high":1.0}})");
}

TEST_CASE("optuna: trials are numbered in the order in which they began") {
    const auto recovered =
        exported_run({trained(0, 1, noon + 9, 1), trained(0, 2, noon, 1), trained(1, 1, noon + 4, 1)});
    std::vector<std::string> ids;
    for (const auto& attribute : records(exported(report::Format::optuna, recovered), 8)) {
        if (attribute["user_attr"].HasMember("id")) {
            ids.push_back(text(attribute["user_attr"]["id"]));
        }
    }
    CHECK(ids == std::vector<std::string>{"0.0.2", "0.1.1", "0.0.1"});
}

TEST_CASE("graphml: an edge for each parent that is known, none for others") {
    search::Individual parent = trained(0, 1, noon, 1);
    search::Individual child = trained(1, 2, noon, 1);
    child.parents = {parent.id, search::Id::make(0, 7, 7)};
    child.retry_of = parent.id;
    const std::string text = exported(report::Format::graphml, exported_run({parent, child}));
    CHECK(text.find("<edge source=\"0.0.1\" target=\"0.1.2\"><data key=\"kind\">parent</data></edge>") !=
          std::string::npos);
    CHECK(text.find("<edge source=\"0.0.1\" target=\"0.1.2\"><data key=\"kind\">retry</data></edge>") !=
          std::string::npos);
    CHECK(text.find("0.7.7") == std::string::npos);
    CHECK(text.find("<key id=\"loss\" for=\"node\" attr.name=\"loss\" attr.type=\"double\"/>") != std::string::npos);
    CHECK(text.find("<data key=\"gene.activation\">tanh</data>") != std::string::npos);
}

TEST_CASE("exports of a run that found nothing yet") {
    for (const std::string_view name : words_of(report::Format{})) {
        CHECK_FALSE(exported(*enumerator<report::Format>(name), exported_run({})).empty());
    }
}
