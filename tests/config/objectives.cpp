#include "config/problem.hpp"

#include <doctest/doctest.h>

namespace {

using namespace finch;
using namespace finch::test;

TEST_CASE("search.duplicates: reuse is refused with several objectives") {
    CHECK(contains(
        problem_of("search: {objective: [validation_loss, parameters], propagator: genetic, duplicates: reuse, "
                   "budget: {evaluations: 5}}"),
        "search.duplicates: supports one objective"));
}

TEST_CASE("search.objective accepts one loss and different costs, and then refuses options for one objective") {
    const auto with = [](const std::string& search) { return problem_of("search: {" + search + "}"); };
    const std::string two = "objective: [validation_error, parameters], ";
    const config::Config config =
        config::parse("search: {objective: [validation_error, seconds, parameters], propagator: genetic}", "file.yaml");

    CHECK(std::get<config::LossObjective>(config.objective) == config::LossObjective::validation_error);
    CHECK(config.costs ==
          std::vector{search::Cost{search::Quantity::seconds}, search::Cost{search::Quantity::parameters}});
    CHECK(contains(with("propagator: genetic, objective: [parameters, validation_loss]"),
                   "search.objective[0]: 'parameters' is no loss of networks, and the first objective must be one; "
                   "accepted: validation_loss"));
    CHECK(contains(with("propagator: genetic, objective: [validation_loss, validation_error]"),
                   "search.objective[1]: 'validation_error' is a loss, and only the first objective is one; accepted: "
                   "-accuracy, -f1, parameters"));
    CHECK(contains(with("propagator: genetic, objective: [validation_loss, seconds, seconds]"),
                   "search.objective[2]: 'seconds' is listed twice; accepted: each objective once"));
    CHECK(contains(with("propagator: genetic, objective: [validation_loss, size]"), "did you mean") == false);
    CHECK(contains(with("propagator: genetic, objective: [validation_loss, size]"),
                   "search.objective[1]: 'size' is unknown; accepted"));
    CHECK(contains(with(two + "propagator: cmaes"),
                   "search.propagator: supports one objective, but the search has 2; accepted: auto, evolution, "
                   "genetic, random, screened"));
    for (const std::string propagator : {"auto", "evolution", "random", "screened"}) {
        CHECK(with(two + "propagator: " + propagator) == "");
    }
    CHECK(contains(with(two + "propagator: genetic, final: {candidates: 2}"), "search.final: supports one objective"));
    CHECK(with(two + "propagator: genetic, budget: {evaluations: 1000, target_loss: 0.5}") == "");
    CHECK_FALSE(
        config::parse("search: {" + two + "propagator: genetic, budget: {evaluations: 1000}}", "").final_choice);
}

TEST_CASE("search.objective accepts macro F1 as -f1, and search.limits as f1; programs have none") {
    const config::Config config = config::parse(
        "search: {objective: [validation_loss, -accuracy, -f1], propagator: genetic, limits: [f1 >= 0.5]}",
        "file.yaml");

    CHECK(to_text(config.costs.at(1)) == "-f1");
    CHECK(config.limits.at(0).cost.quantity == search::Quantity::f1);
    CHECK(contains(problem_of("search: {objective: [validation_loss, f1], propagator: genetic}"),
                   "search.objective[1]: 'f1' is unknown (did you mean '-f1'?)"));
    CHECK(contains(problem_of("search: {objective: {command: run, objectives: [loss, -f1]}, propagator: genetic}"),
                   "search.objective.objectives[1]: '-f1' is no cost of programs"));
    CHECK(contains(problem_of("search: {objective: {command: run}, limits: [f1 >= 0.5]}"),
                   "search.limits[0]: 'f1 >= 0.5': results of programs have no f1"));
}

TEST_CASE("search.objective and search.limits: a regression has no accuracy and no F1") {
    const auto with = [](const std::string& search) {
        return problem_of("data: {kind: hdf5, path: a.h5}\ntraining: {loss: mean_squared_error}\nsearch: {" + search +
                          "}");
    };
    const std::string refused = "needs classes, but training.loss is mean_squared_error; accepted: ";
    const std::string accepted = refused + "parameters, seconds, joules";

    CHECK(with("objective: [validation_loss, parameters], limits: [parameters <= 5000]") == "");
    CHECK(contains(with("objective: [validation_loss, parameters, -accuracy]"),
                   "search.objective[2]: '-accuracy' " + accepted));
    CHECK(contains(with("objective: [validation_loss, -f1]"), "search.objective[1]: '-f1' " + accepted));
    CHECK(contains(with("limits: [parameters <= 5000, f1 >= 0.5]"),
                   "search.limits[1]: 'f1 >= 0.5' " + refused + "loss, parameters, seconds, joules"));
}

TEST_CASE("search.objective.objectives names quantities of programs, and a minus maximises one") {
    const auto of_program = [](const std::string& objectives) {
        return "search: {objective: {command: run, objectives: " + objectives + "}, propagator: genetic}";
    };
    const auto names = [&](const std::string& objectives) {
        std::vector<std::string> found;
        for (const search::Cost& cost : config::parse(of_program(objectives), "file.yaml").costs) {
            found.push_back(to_text(cost) + "@" + std::to_string(cost.place));
        }
        return found;
    };
    const auto with = [&](const std::string& objectives) { return problem_of(of_program(objectives)); };

    CHECK(names("[loss]").empty());
    CHECK(names("[loss, metric.a, joules, -metric.b]") ==
          std::vector<std::string>{"metric.a@0", "joules@0", "-metric.b@1"});
    CHECK(contains(with("[joules, loss]"), "search.objective.objectives[0]: 'joules' is not the reported loss"));
    CHECK(contains(with("[loss, parameters]"), "search.objective.objectives[1]: 'parameters' is no cost of programs"));
    CHECK(contains(with("[loss, -acuracy]"), "(did you mean '-accuracy'?)"));
    CHECK(contains(with("[loss, accuracy]"), "'accuracy' would be minimised; accepted: -accuracy"));
    CHECK(contains(with("[loss, metric.a, metric.a]"),
                   "search.objective.objectives[2]: 'metric.a' is listed twice; accepted: each objective once"));
    CHECK(contains(with("[loss, -metric.checkpoint]"),
                   "search.objective.objectives[1]: '-metric.checkpoint' is the folder of a checkpoint in a report "
                   "(search.inherit), and no metric; accepted: another name"));
    CHECK(contains(with("[loss, a, b, c, d]"), "accepted: from 1 to 4"));
    CHECK(contains(problem_of("search: {objective: [validation_loss, metric.a], propagator: genetic}"),
                   "search.objective[1]: 'metric.a' is unknown; accepted"));
}

TEST_CASE("with several objectives, pruning is halving or median") {
    const auto with = [](const std::string& search) { return problem_of("search: {" + search + "}"); };
    const std::string two = "objective: [validation_error, parameters], propagator: genetic, ";
    const std::string program = "objective: {command: run, objectives: [loss, joules]}, propagator: genetic, ";

    CHECK(with(two + "pruning: {halving: {first_epoch: 3, factor: 2}}") == "");
    CHECK(with(two + "pruning: median") == "");
    CHECK(contains(with(two + "pruning: curve"), "search.pruning: supports one objective"));
    CHECK(contains(with(two + "pruning: curve"), "accepted: none, halving, median"));
    CHECK(contains(with(program + "pruning: halving"), "search.pruning: compares joules at rungs"));
}

TEST_CASE("search.limits are refused with their place if they cannot be read or name what results do not have") {
    const auto with = [](const std::string& limit, const std::string& objective) {
        return problem_of("search:\n  objective: " + objective + "\n  limits: ['" + limit + "']\n");
    };

    CHECK(with("parameters <= 50000", "validation_loss") == "");
    CHECK(with("metric.latency_ms <= 5", "{command: run}") == "");
    CHECK(with("loss <= 5", "{function: sphere}") == "");
    CHECK(
        begins(with("parameter <= 5", "validation_loss"),
               "file.yaml:3: search.limits[0]: 'parameter <= 5': 'parameter' is no number of a result (did you mean"));
    CHECK(contains(with("parameters <= 5", "{command: run}"),
                   "'parameters <= 5': results of programs have no parameters; accepted: loss, accuracy, seconds, "
                   "joules, metric.NAME"));
    CHECK(contains(with("metric.f1 >= 5", "validation_loss"),
                   "'metric.f1 >= 5': results of networks have no metrics; accepted: loss"));
    CHECK(contains(with("metric.checkpoint <= 5", "{command: run}"),
                   "'metric.checkpoint <= 5': metric.checkpoint is the folder of a checkpoint in a report"));
    CHECK(contains(problem_of("search: {limits: [1]}"), "search.limits[0]"));
    CHECK(contains(problem_of("search: {objective: {command: run}, limits: [metric.a <= 1], reuse: [runs/a]}"),
                   "search.limits[0]: 'metric.a <= 1': the results of search.reuse have no f1 and no metrics"));
}

}  // namespace
