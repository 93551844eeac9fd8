#include "config/problem.hpp"

#include <doctest/doctest.h>

namespace {

using namespace finch;
using namespace finch::test;

TEST_CASE("the default propagator is auto") {
    const auto index_of = [](const std::string& search) {
        return config::parse("search: {" + search + "budget: {evaluations: 5}}", "file.yaml").propagator.index();
    };
    CHECK(index_of("") == search::PropagatorOptions(search::AutomaticOptions{}).index());
    CHECK(index_of("propagator: auto, ") == index_of(""));
    CHECK(contains(config::parse("search: {budget: {evaluations: 5}}", "file.yaml").text(), "propagator: auto"));
}

TEST_CASE("search.islands: the list of propagators is used cyclically; more entries than islands are refused") {
    const auto sphere = [](const std::string& more) {
        return "search: {objective: {function: sphere}, propagator: random, " + more + "}\nworkers: {islands: 3}";
    };
    const config::Config config = config::parse(
        sphere("islands: [{propagator: cmaes}, {propagator: {swarm: {particles: 9, inertia: 0.5}}}]"), "f");
    CHECK(std::holds_alternative<search::CmaEsOptions>(config.propagator_of(0)));
    CHECK(std::get<search::SwarmOptions>(config.propagator_of(1)).particles == 9);
    CHECK(std::get<search::SwarmOptions>(config.propagator_of(1)).inertia == 0.5);
    CHECK(std::holds_alternative<search::CmaEsOptions>(config.propagator_of(2)));
    CHECK(config.first_points() == 9);
    CHECK(config::parse(config.text(), "f").text() == config.text());
    CHECK(config::parse(sphere("islands: none"), "f").fixed_text() == config.fixed_text());

    CHECK(std::holds_alternative<search::RandomSearchOptions>(
        config::parse(sphere("islands: none"), "f").propagator_of(1)));
    const std::string one = "{propagator: random}";
    CHECK(contains(problem_of(sphere("islands: [" + one + ", " + one + ", " + one + ", " + one + "]")),
                   "search.islands: 4 entries for 3 islands; accepted: as many as workers.islands says, or fewer"));
    CHECK(contains(problem_of(sphere("islands: [{propagator: {swarm: {cognitive: 1, social: 2}}}]")),
                   "'canonical' needs cognitive + social above 4, not 3"));
    CHECK(contains(problem_of(sphere("islands: [{propagator: {swarm: {variant: clamped}}}]")),
                   "did you mean basic with clamping"));
    CHECK(contains(problem_of(sphere("islands: [{propagator: {swarm: {variant: constriction}}}]")),
                   "did you mean canonical with clamping: 10"));
}

TEST_CASE("nelder_mead: an unordered choice is refused; the message names the gene") {
    CHECK(contains(problem_of("search: {space: {act: {choice: [relu, tanh]}}, propagator: nelder_mead}\n"
                              "model: [{conv: {activation: $act}}, flatten, linear]"),
                   "search.propagator: nelder_mead moves numbers and ordered choices, and act is a choice without an "
                   "order"));
}

}  // namespace
