#include "finch/report/tables.hpp"

#include "store/samples.hpp"

#include <doctest/doctest.h>

using namespace finch;

namespace {

search::Individual evaluated(std::uint32_t number, std::int32_t island, double loss) {
    search::Individual individual;
    individual.id = search::Id::make(0, 0, number);
    individual.island = island;
    individual.genome = {4, 0, 0.001, 0.5};
    individual.outcome = search::Outcome::evaluated;
    individual.loss = loss;
    individual.accuracy = 0.9375;
    individual.started = 100;
    individual.finished = 142.5;
    return individual;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string part_between(const std::string& text, const std::string& begin, const std::string& end) {
    const std::size_t first = text.find(begin);
    return first == std::string::npos ? "" : text.substr(first, text.find(end, first + 1) - first);
}

/// Returns facts of two starts. Start 0: two workers, one hour, 30 evaluations. Start 1: one worker, half an hour, 15
/// evaluations.
store::ArchiveFacts facts_of_two_starts() {
    store::ArchiveFacts facts;
    facts.state = RunState::stopped;
    facts.islands = 2;
    facts.restarts = 1;
    facts.budget_evaluations = 200;
    facts.reports[{0, 0}] = {0, 0, 0, 2, 4, "old", "cpu", 1, 3600, 1800, 10};
    facts.reports[{0, 1}] = {0, 1, 1, 2, 4, "old", "cpu", 1, 3000, 1800, 20};
    facts.reports[{1, 0}] = {1, 0, 0, 3, 5, "new-node", "cpu", 1, 1800, 1350, 15};
    return facts;
}

}  // namespace

TEST_CASE("best_table: lists at most `count` individuals per island in order of loss, with named genes") {
    search::Population population(search::ExchangeKind::none, 3);
    for (std::uint32_t number = 1; number <= 5; ++number) {
        population.merge(evaluated(number, static_cast<std::int32_t>(number % 2), 1.0 / number));
    }

    const std::string text =
        report::best_table(store::samples::mnist_space(), population, {}, {.count = 2, .of_each_island = true}, "loss");

    const std::string first = part_between(text, "island 0", "island 1");
    const std::string second = part_between(text, "island 1", "island 2");
    CHECK(contains(first, "0.0.4"));
    CHECK(contains(first, "0.0.2"));
    CHECK(second.find("0.0.5") < second.find("0.0.3"));
    CHECK_FALSE(contains(second, "0.0.1 "));
    CHECK(contains(first, "conv_layers = 4, activation = relu, lr = 0.001, gamma = 0.5"));
    CHECK(contains(first, "93.8 %"));
    CHECK(contains(first, "42.5"));
    CHECK(contains(text.substr(text.find("island 2")), "none yet"));
}

TEST_CASE("final_table: shows loss, mean and deviation of the repeats and the winner; is empty without repeats") {
    search::Population population(search::ExchangeKind::none, 1);
    for (std::uint32_t number = 1; number <= 3; ++number) {
        search::Individual one = evaluated(number, 0, 0.25 * number);
        one.genome[0] = number;
        population.merge(one);
    }
    const auto table = [&] {
        return report::final_table(store::samples::mnist_space(), population, search::FinalChoice{2, 2}, "loss");
    };
    const auto repeat = [&](std::uint32_t number, std::uint32_t of, double loss) {
        search::Individual one = evaluated(number, 0, loss);
        one.bred_by = search::Operator::repeat;
        one.parents[0] = search::Id::make(0, 0, of);
        population.merge(one);
    };
    CHECK(table().empty());

    repeat(4, 1, 0.875);
    repeat(5, 1, 0.625);
    CHECK(contains(table(), "final choice: the best 2 again with other seeds; no winner"));
    repeat(6, 2, 0.5);
    repeat(7, 2, 0.5625);

    CHECK(contains(table(), "0.0.2 wins, its best repeat is 0.0.6"));
    CHECK(contains(part_between(table(), "0.0.1 ", "0.0.2 "), "0.25      0.75   0.176777"));
    CHECK(contains(table(), "0.53125"));
    CHECK_FALSE(contains(table(), "0.0.3"));
    CHECK(report::final_table(store::samples::mnist_space(), population, std::nullopt, "loss").empty());
    CHECK(contains(report::best_table(store::samples::mnist_space(), population, {}, {.count = 9}, "loss"),
                   "the best 3 of 3"));
}

TEST_CASE("front_table: lists the Pareto front in loss and costs over all islands; is empty without costs") {
    const std::vector<search::Cost> costs{search::Cost{search::Quantity::parameters},
                                          search::Cost{search::Quantity::seconds}};
    search::Population population(search::ExchangeKind::none, 2, costs);
    for (std::uint32_t number = 1; number <= 4; ++number) {
        search::Individual one = evaluated(number, static_cast<std::int32_t>(number % 2), 0.25 * number);
        one.parameters = number == 3 ? 5000 : 4000 - number;
        one.training_seconds = 10;
        population.merge(one);
    }

    const std::string text = report::front_table(store::samples::mnist_space(), population, costs, "error");

    CHECK(contains(text, "the front: 3 of 4 individuals that no other beats in error and parameters and seconds"));
    CHECK(text.find("0.0.1") < text.find("0.0.2"));
    CHECK(text.find("0.0.2") < text.find("0.0.4"));
    CHECK(contains(text, "3999"));
    CHECK_FALSE(contains(text, "0.0.3"));
    CHECK(report::front_table(store::samples::mnist_space(), population, {}, "error").empty());
}

TEST_CASE("overview: shows the energy of the run and of individuals, or no energy if nothing was measured") {
    store::Recovered recovered;
    recovered.facts = facts_of_two_starts();
    recovered.space = store::samples::mnist_space();
    std::vector<search::Individual> all;
    for (std::uint32_t number = 1; number <= 5; ++number) {
        all.push_back(evaluated(number, 0, 0.25 * number));
    }
    const auto overview = [&] {
        recovered.records.clear();
        for (const search::Individual& one : all) {
            recovered.records.emplace_back(search::Result{one});
        }
        return report::overview(recovered, "runs/a", {.count = 9}, {});
    };
    CHECK_FALSE(contains(overview(), "energy"));
    all[0].joules = 7200;
    all[1].joules = 1800;
    all[2].joules = 1000;
    all[3].joules = 0;
    all[3].reused_from = all[0].id;

    const std::string text = overview();

    CHECK(contains(text, "  energy: 10.0 kJ; not known of 1 individual\n"));
    for (const char* part :
         {" 42.5  7.20 kJ  conv_layers", " 42.5  1.80 kJ  conv_layers", " as 0.0.1  -        conv"}) {
        CAPTURE(text);
        CHECK(contains(text, part));
    }
}

TEST_CASE("overview: an individual with a reused result is listed after its source and names the source") {
    search::Individual reused = evaluated(1, 0, 0.5);
    reused.reused_from = evaluated(2, 0, 0.5).id;
    reused.started = 0;
    store::Recovered recovered;
    recovered.facts = facts_of_two_starts();
    recovered.space = store::samples::mnist_space();
    recovered.records = {search::Result{reused}, search::Result{evaluated(2, 0, 0.5)}};

    const std::string text = report::overview(recovered, "runs/a", {}, {});

    CHECK(contains(text, "1 of 200 evaluations, 1 reused, 0 unfinished"));
    CHECK(contains(text, "as 0.0.2"));
    const std::string table = part_between(text, "best of all", "workers");
    CHECK(table.find("42.5") < table.find("as 0.0.2"));
}

TEST_CASE("outcome_words counts individuals by outcome") {
    search::Population population(search::ExchangeKind::none, 1);
    population.merge(evaluated(1, 0, 1));
    population.merge(evaluated(2, 0, 1));
    search::Individual failed = evaluated(3, 0, 1);
    failed.outcome = search::Outcome::out_of_memory;
    population.merge(failed);

    CHECK(report::outcome_words(population) == "2 evaluated, 1 out_of_memory");
}

TEST_CASE("worker_table: lists the workers of the last start with the share of time spent in training") {
    const std::string text = report::worker_table(facts_of_two_starts());

    CHECK(contains(text, "new-node"));
    CHECK_FALSE(contains(text, "old"));
    CHECK(contains(text, "75.0 %"));
    CHECK(contains(report::worker_table({}), "no report yet"));
}

TEST_CASE("evaluations_per_hour: evaluations of all workers divided by the hours of all starts") {
    CHECK(report::evaluations_per_hour(facts_of_two_starts()) == doctest::Approx(45 / 1.5));
    CHECK(report::evaluations_per_hour({}) == 0);
}

TEST_CASE("event_list: lists the last events, oldest first") {
    store::ArchiveFacts facts;
    for (int i = 0; i < 5; ++i) {
        facts.events.push_back({1e9 + i, i, "kind", "text " + std::to_string(i)});
    }

    const std::string text = report::event_list(facts, 2);

    CHECK_FALSE(contains(text, "text 2"));
    CHECK(text.find("text 3") < text.find("text 4"));
    CHECK(contains(text, "2 of 5"));
}

TEST_CASE("start_list: lists the last starts with job, nodes, deadline and log if these are known") {
    store::ArchiveFacts facts;
    facts.starts = {{.restart = 0}, {.restart = 1}, {.restart = 2}};
    CHECK(report::start_list(facts, 5).empty());
    for (store::Start& start : facts.starts) {
        start.job = std::to_string(100 + start.restart);
    }
    facts.starts[2].cluster = "juwels";
    facts.starts[2].node_list = "n[1-2]";
    facts.starts[2].log = "/scratch/slurm-102.out\n";
    facts.starts[2].deadline = 1789990000;

    const std::string text = report::start_list(facts, 2);

    CHECK_FALSE(contains(text, "job 100"));
    CHECK(contains(text, "  start 2  "));
    CHECK(contains(text, "  job 101\n"));
    CHECK(contains(text, "job 102 on juwels, nodes n[1-2], deadline 2026-"));
    CHECK(contains(text, ", log /scratch/slurm-102.out?\n"));
}

TEST_CASE("overview: contains the run, its state and the damaged files") {
    store::Recovered recovered;
    recovered.facts = facts_of_two_starts();
    recovered.space = store::samples::mnist_space();
    recovered.records.emplace_back(search::Result{evaluated(1, 1, 0.5)});
    recovered.problems.emplace_back("x.journal: 3 bytes are damaged");

    const std::string text = report::overview(recovered, "runs/mnist", {}, {});

    CHECK(contains(text, "run runs/mnist: stopped early"));
    CHECK(contains(text, "1 of 200 evaluations, 0 unfinished, 2 islands, 2 starts"));
    CHECK(contains(text, "30.0 evaluations per hour"));
    CHECK(contains(text, "outcomes: 1 evaluated"));
    CHECK(contains(text, "0.0.1"));
    CHECK(contains(text, "x.journal"));
}

TEST_CASE("best_table: pruned trainings are marked and listed after complete trainings") {
    search::Individual pruned = evaluated(1, 0, 0.1);
    pruned.outcome = search::Outcome::pruned;
    pruned.pruning.edit().rung = 2;
    pruned.epochs = 3;
    search::Population population(search::ExchangeKind::none, 1);
    population.merge(pruned);
    population.merge(evaluated(2, 0, 0.5));

    const std::string text = report::best_table(store::samples::mnist_space(), population, {}, {.count = 2}, "loss");

    CHECK(text.find("0.0.2") < text.find("0.0.1"));
    CHECK(contains(text, " 3 (pruned) "));
}

TEST_CASE("overview: contains the number of trained epochs, and the budget of epochs if there is one") {
    store::Recovered recovered;
    recovered.facts = facts_of_two_starts();
    recovered.space = store::samples::mnist_space();
    search::Individual one = evaluated(1, 1, 0.5);
    one.epochs = 12;
    recovered.records.emplace_back(search::Result{one});

    const auto text = [&] { return report::overview(recovered, "runs/mnist", {}, {}); };

    CHECK(contains(text(), ", 12 epochs\n"));
    recovered.facts.budget_epochs = 600;
    CHECK(contains(text(), ", 12 of 600 epochs\n"));
}

TEST_CASE("overview: with pollination, one list has the best of all islands; a list per island is optional") {
    store::Recovered recovered;
    recovered.facts = facts_of_two_starts();
    recovered.space = store::samples::mnist_space();
    recovered.records.emplace_back(search::Result{evaluated(1, 0, 0.5)});
    recovered.records.emplace_back(search::Result{evaluated(2, 1, 0.75)});
    recovered.records.emplace_back(search::Copy{evaluated(1, 0, 0.5), 1});
    const report::Competition competition{.exchange = search::ExchangeKind::pollination};

    const std::string once = part_between(report::overview(recovered, "a", {}, competition), "best of all", "workers");
    const std::string each = report::overview(recovered, "a", {.of_each_island = true}, competition);

    CHECK(contains(once, "best of all: the best 2 of 2 individuals"));
    CHECK(once.find("0.0.1 ") < once.find("0.0.2 "));
    CHECK(once.find("0.0.1 ") == once.rfind("0.0.1 "));
    CHECK_FALSE(contains(once, "island 0:"));
    CHECK(contains(part_between(each, "island 0:", "island 1:"), "0.0.1"));
    CHECK(contains(part_between(each, "island 1:", "workers"), "0.0.1"));
    CHECK_FALSE(contains(part_between(each, "island 1:", "workers"), "0.0.2"));
}

TEST_CASE("best_table: with migration, every island has its own list of the best individuals") {
    search::Population population(search::ExchangeKind::migration, 2);
    population.merge(evaluated(1, 0, 0.5));
    population.merge(evaluated(2, 1, 0.75));

    const std::string text = report::best_table(store::samples::mnist_space(), population, {}, {}, "loss");

    CHECK(contains(part_between(text, "island 0:", "island 1:"), "0.0.1"));
    CHECK(contains(text.substr(text.find("island 1:")), "0.0.2"));
}

TEST_CASE("overview: uses the name and unit of the minimised measure instead of the word loss") {
    store::Recovered recovered;
    recovered.facts = facts_of_two_starts();
    recovered.space = store::samples::mnist_space();
    recovered.records.emplace_back(search::Result{evaluated(1, 0, 0.5)});

    const std::string text =
        report::overview(recovered, "a", {},
                         {.costs = {search::Cost{search::Quantity::parameters}},
                          .measure = {.name = "error", .title = "validation error (share of images)"}});

    CHECK(contains(text, "minimises validation error (share of images) and parameters\n"));
    CHECK(contains(part_between(text, "best of all", "the front"), " error "));
    CHECK(contains(text, "no other beats in error and parameters"));
    CHECK_FALSE(contains(text, "loss"));
}

TEST_CASE("best_table: seconds are training_seconds over all starts, not the time since the last start") {
    search::Individual resumed = evaluated(1, 0, 0.5);
    resumed.training_seconds = 17.25;
    search::Population population(search::ExchangeKind::none, 1);
    population.merge(resumed);

    const std::string text = report::best_table(store::samples::mnist_space(), population, {}, {.count = 1}, "loss");

    CHECK(contains(text, "17.2"));
    CHECK_FALSE(contains(text, "42.5"));
}
