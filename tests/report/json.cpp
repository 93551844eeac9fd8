#include "finch/report/json.hpp"

#include "finch/report/individual.hpp"

#include "store/samples.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <rapidjson/document.h>
#include <sstream>

using namespace finch;

namespace {

search::Individual evaluated(std::uint32_t number, double loss) {
    search::Individual one;
    one.id = search::Id::make(0, 0, number);
    one.genome = {6, 2, 0.1 + 0.2, 0.75};
    one.outcome = search::Outcome::evaluated;
    one.loss = loss;
    one.problem = "said \"no\"";
    one.reused_run = 0xC0FFEE00C0FFEEFF;
    return one;
}

store::Recovered run_of_json(const std::vector<search::Individual>& individuals) {
    store::Recovered recovered;
    recovered.space = store::samples::mnist_space();
    recovered.facts.state = RunState::complete;
    recovered.facts.seed = 18446744073709551615U;
    recovered.facts.reports[{0, 0}] = {0, 0, 0, 2, 4, "old", "cpu", 1, 3600, 1800, 10};
    recovered.facts.reports[{1, 0}] = {1, 0, 0, 2, 4, "new", "cpu", 1, 3600, 1800, 10};
    for (const search::Individual& one : individuals) {
        recovered.records.emplace_back(search::Result{one});
    }
    return recovered;
}

/// Parses standard JSON, which has no NaN.
rapidjson::Document parsed(const std::string& text) {
    rapidjson::Document document;
    document.Parse<rapidjson::kParseFullPrecisionFlag | rapidjson::kParseValidateEncodingFlag>(text.c_str());
    REQUIRE_MESSAGE(!document.HasParseError(), text);
    return document;
}

}  // namespace

TEST_CASE("json: joules of a run are the sum over its individuals, or null if no individual has a measurement") {
    std::vector<search::Individual> all{evaluated(1, 0.5), evaluated(2, 1.0 / 3), evaluated(3, 2)};
    const auto run = [&] {
        const auto recovered = run_of_json(all);
        return parsed(report::run_json(recovered, recovered.space, {search::ExchangeKind::none}, "runs/a", 2));
    };
    CHECK(run()["joules"].IsNull());
    all[0].joules = 0.5;
    all[1].joules = 0.25;

    const auto known = run();

    CHECK(known["joules"].GetDouble() == 0.75);
    CHECK(known["unknown_joules"].GetInt() == 1);
    CHECK(known["islands"][0]["best"][0]["joules"].GetDouble() == 0.25);
}

TEST_CASE("json: invalid UTF-8 in a run's name is replaced") {
    const auto recovered = run_of_json({evaluated(1, 0.5)});

    const auto run = parsed(report::run_json(recovered, recovered.space, {}, "runs/a\xFF", 2));

    CHECK(std::string(run["run"].GetString()) == "runs/a?");
}

TEST_CASE("json: a run contains its best individuals, with exact numbers, words for choices and null for NaN") {
    const auto recovered = run_of_json({evaluated(1, 0.5), evaluated(2, 1.0 / 3), evaluated(3, 2)});
    const auto run = parsed(
        report::run_json(recovered, recovered.space, {.measure = {"error", "error (share)"}}, "runs/a \"b\"", 2));
    CHECK(std::string(run["measure"]["name"].GetString()) == "error");
    CHECK(std::string(run["measure"]["title"].GetString()) == "error (share)");
    CHECK(std::string(run["best"][1]["id"].GetString()) == "0.0.1");
    CHECK(std::string(run["run"].GetString()) == "runs/a \"b\"");
    CHECK(std::string(run["seed"].GetString()) == "18446744073709551615");
    CHECK(run["outcomes"]["evaluated"].GetInt() == 3);
    const auto& best = run["islands"][0]["best"];
    REQUIRE(best.Size() == 2);
    CHECK(std::string(best[0]["id"].GetString()) == "0.0.2");
    CHECK(best[0]["loss"].GetDouble() == 1.0 / 3);
    CHECK(best[0]["genes"]["lr"].GetDouble() == 0.1 + 0.2);
    CHECK(best[0]["genes"]["conv_layers"].GetInt() == 6);
    CHECK(std::string(best[0]["genes"]["activation"].GetString()) == "tanh");
    CHECK(best[0]["accuracy"].IsNull());
    CHECK(best[0]["parent_1"].IsNull());
    REQUIRE(run["workers"].Size() == 1);
    CHECK(std::string(run["workers"][0]["node"].GetString()) == "new");
}

TEST_CASE("json: with several objectives, the hypervolume of the front has a reference point as it is reported") {
    std::vector<search::Individual> all{evaluated(1, 0.5), evaluated(2, 1)};
    all[0].accuracy = 0.25;
    all[1].accuracy = 0.75;
    const std::vector<search::Cost> costs{{.quantity = search::Quantity::accuracy, .is_maximised = true}};
    const auto run = [&] {
        const auto recovered = run_of_json(all);
        return parsed(report::run_json(recovered, recovered.space, {.costs = costs}, "runs/a", 2));
    };

    const auto two = run();
    all.pop_back();
    const auto one = run();

    // The reference is 0.05 to the worse side of the front: 1.05 and 0.2. The box is 0.55 x 0.55; each point dominates
    // 0.55 x 0.05 of it, and both dominate 0.05 x 0.05.
    CHECK(two["hypervolume"]["share"].GetDouble() == doctest::Approx((2 * 0.55 * 0.05 - 0.05 * 0.05) / (0.55 * 0.55)));
    CHECK(two["hypervolume"]["reference"]["loss"].GetDouble() == doctest::Approx(1.05));
    CHECK(two["hypervolume"]["reference"]["accuracy"].GetDouble() == doctest::Approx(0.2));
    CHECK(one["hypervolume"].IsNull());
    const auto recovered = run_of_json(all);
    CHECK_FALSE(parsed(report::run_json(recovered, recovered.space, {}, "runs/a", 2)).HasMember("hypervolume"));
}

TEST_CASE("json: an individual contains its learning curve") {
    search::Individual one = evaluated(1, 0.25);
    one.curve = {{.epoch = 1, .validation_loss = 0.5}, {.epoch = 2, .validation_loss = 0.25}};
    const auto recovered = run_of_json({one});
    const auto read = parsed(report::individual_json(recovered, recovered.space, {}, one.id));
    REQUIRE(read["curve"].Size() == 2);
    CHECK(read["curve"][1]["epoch"].GetInt() == 2);
    CHECK(read["curve"][1]["validation_loss"].GetDouble() == 0.25);
    CHECK(std::string(read["problem"].GetString()) == "said \"no\"");
    CHECK(std::string(read["reused_run"].GetString()) == "c0ffee00c0ffeeff");
    CHECK_THROWS_AS((void)report::individual_json(recovered, recovered.space, {}, search::Id::make(9, 9, 9)),
                    ConfigError);
}

TEST_CASE("individual_text: error output that is common to ranks and the problem is printed once") {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder / "run");
    search::Individual one = evaluated(1, 7);
    one.outcome = search::Outcome::failed;
    one.ranks = 2;
    const std::string traceback = "Traceback:\n  File a, line 3\nOSError: no x.h5";
    one.problem = "rank 0: exit code 1: " + traceback;
    const auto file = [&](const std::string& what, const std::string& text) {
        const std::filesystem::path path = directory.evaluation_file(one.id, what);
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text << "\n";
    };
    const auto recovered = run_of_json({one});

    CHECK(report::individual_text(recovered, directory, one.id, search::Measure{}).find("line 3") != std::string::npos);
    file("errors-0", "rank 0: " + traceback);
    file("errors-1", "rank 1: " + traceback);
    const std::string text = report::individual_text(recovered, directory, one.id, search::Measure{});

    CHECK(text.find("problem: rank 0: exit code 1: OSError: no x.h5\n") != std::string::npos);
    CHECK(text.find("line 3") == text.rfind("line 3"));
    CHECK(text.ends_with("errors-1: as 1.errors-0\n"));
}

TEST_CASE("individual_text: shows norms by layer, not as columns of the learning curve") {
    search::Individual one = evaluated(1, 7);
    one.curve = {{.epoch = 1, .validation_loss = 8}, {.epoch = 2, .validation_loss = 7}};
    one.metrics = {{1, "weight_norm.0", 1.5},      {1, "grad_norm.0", 0.25},     {1, "weight_norm.3.body.0", 4},
                   {1, "grad_norm.3.body.0", 8},   {2, "weight_norm.0", 1.75},   {2, "grad_norm.0", 0.125},
                   {2, "weight_norm.3.body.0", 5}, {2, "grad_norm.3.body.0", 9}, {1, "top5", 0.5}};
    const auto recovered = run_of_json({one});

    const std::string text = report::individual_text(recovered, store::RunDirectory("none"), one.id, {});

    const std::string head = text.substr(text.find("epoch  "));
    CHECK(head.substr(0, head.find('\n')).find("norm") == std::string::npos);
    CHECK(head.substr(0, head.find('\n')).find("top5") != std::string::npos);
    std::vector<std::string> words;
    std::istringstream table(text.substr(text.find("norms of the layers")));
    for (std::string word; table >> word;) {
        words.push_back(word);
    }
    REQUIRE(words.size() >= 28);
    CHECK(std::vector(words.begin() + 14, words.begin() + 28) ==
          std::vector<std::string>{"0", "1.5", "1.75", "▁█", "0.25", "0.125", "█▁", "3.body.0", "4", "5", "▁█", "8",
                                   "9", "▁█"});
}

TEST_CASE("individual_text: names the parent of an heir, and the epochs that each ancestor has trained") {
    std::vector<search::Individual> line{evaluated(1, 7), evaluated(2, 6), evaluated(3, 5)};
    for (const std::size_t child : {1, 2}) {
        line[child].parents[0] = line[child].inherited_from = line[child - 1].id;
        line[child].inherited_epochs = child == 1 ? 3 : 9;
        line[child].epochs = 12;
    }

    const std::string text =
        report::individual_text(run_of_json(line), store::RunDirectory("none"), line.back().id, search::Measure{});

    const std::string parent = to_text(line[1].id);
    CHECK_MESSAGE(text.find(", from " + parent + ", continues it after epoch 9\n") != std::string::npos, text);
    const std::string lineage = text.substr(text.find("lineage"));
    CHECK_MESSAGE(lineage.find(" 4 to 9") < lineage.find(" 1 to 3"), lineage);
}

TEST_CASE("individual_text: shows the learning curve as bars, and each ancestor of five generations once") {
    std::vector<search::Individual> line{evaluated(1, 7)};
    for (std::uint32_t number = 2; number <= 8; ++number) {  // the parents are the two previous individuals
        line.push_back(evaluated(number, 8.0 - number));
        line.back().parents = {line[number - 2].id, number > 2 ? line[number - 3].id : search::Id{}};
    }
    line.back().curve = {{.validation_loss = 8}, {.validation_loss = 1}, {.validation_loss = 4.5}};
    const auto recovered = run_of_json(line);
    const std::string text = report::individual_text(recovered, store::RunDirectory("none"), line.back().id, {});
    CHECK(text.find("learning curve  █▁▅  loss\n") != std::string::npos);
    CHECK(text.find("norms") == std::string::npos);
    std::istringstream lineage(text.substr(text.find("lineage")));
    std::vector<std::string> found;
    std::string row;
    std::getline(lineage, row);
    std::getline(lineage, row);
    while (std::getline(lineage, row)) {
        std::istringstream words(row);
        std::string back;
        std::string id;
        words >> back >> id;
        found.push_back(back + " " + id);
    }
    CHECK(found ==
          std::vector<std::string>{"1 0.0.7", "1 0.0.6", "2 0.0.5", "2 0.0.4", "3 0.0.3", "3 0.0.2", "4 0.0.1"});
}
