#include "finch/search/costs.hpp"

#include "finch/base/error.hpp"
#include "finch/search/population.hpp"

#include "search/samples.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

namespace finch::search {
namespace {

using samples::evaluated;
using samples::pruned;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string problem_of(const std::string& text) {
    try {
        (void)parse_limit(text);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

Individual breaking(std::uint32_t number, double loss, double violation) {
    Individual individual = evaluated(number, loss);
    individual.violation = violation;
    return individual;
}

/// An individual whose best epoch is 2 of 3, with a metric that was reported after each epoch.
Individual with_metric(const std::string& name) {
    Individual individual = evaluated(1, 0.5);
    individual.best_epoch = 2;
    individual.metrics = {{1, name, 10}, {2, name, 20}, {3, name, 30}};
    return individual;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("parse_cost: reads the names that to_text() writes, and nothing else") {
    for (const std::string text : {"loss", "accuracy", "-accuracy", "parameters", "seconds", "joules", "metric.f1",
                                   "-metric.f1", "metric.val/f1.macro"}) {
        REQUIRE(parse_cost(text));
        CHECK(to_text(*parse_cost(text)) == text);
    }
    for (const std::string text : {"", "-", "metric", "metric.", "--joules", "size", "Joules"}) {
        CHECK_FALSE(parse_cost(text));
    }
    CHECK_FALSE(parse_cost("metric." + std::string(Metric::longest_name + 1, 'a')));
}

TEST_CASE("cost_of: a minus negates the value, and values that are not known are the largest") {
    Individual one = evaluated(1, 0.5);
    one.accuracy = 0.75;
    one.objective_metrics[1] = 8;

    CHECK(cost_of(*parse_cost("-accuracy"), one) == -0.75);
    CHECK(cost_of({.quantity = Quantity::metric, .metric = "f1", .is_maximised = true, .place = 1}, one) == -8);
    CHECK(cost_of({.quantity = Quantity::metric, .metric = "f2", .is_maximised = true, .place = 2}, one) == infinity);
    CHECK(cost_of(*parse_cost("joules"), one) == infinity);
}

TEST_CASE("parse_limit: NAME <= NUMBER and NAME >= NUMBER, with or without blanks") {
    const Limit upper = parse_limit("metric.latency<=5e-1");
    const Limit lower = parse_limit(" accuracy >= 0.9 ");

    CHECK(upper.cost.metric == "latency");
    CHECK(excess(upper, 0.5) == 0);
    CHECK(excess(parse_limit("loss <= 0.3"), 0.1 + 0.2) == 0);
    CHECK(excess(upper, 0.75) == doctest::Approx(0.5));
    CHECK(excess(lower, -0.9) == 0);
    CHECK(excess(lower, -0.45) == doctest::Approx(0.5));
    CHECK(excess(parse_limit("loss <= 0"), 3) == 3);
    CHECK(excess(upper, infinity) == infinity);
}

TEST_CASE("parse_limit: a limit that cannot be read is refused with what is accepted") {
    CHECK(contains(problem_of("parameter <= 5"), "'parameter' is no number of a result (did you mean 'parameters'?)"));
    CHECK(contains(problem_of("parameter <= 5"),
                   "accepted: loss, accuracy, f1, parameters, seconds, joules, metric.NAME"));
    CHECK(contains(problem_of("-accuracy <= 5"), "'-accuracy' is no number of a result"));
    CHECK(contains(problem_of("parameters"), "has no <= or >=; accepted: NAME <= NUMBER or NAME >= NUMBER"));
    CHECK(contains(problem_of("parameters < 5"), "has no <= or >="));
    for (const std::string number : {"", "x", "5 MB", "nan", "inf", "1 <= 2"}) {
        CHECK(contains(problem_of("parameters <= " + number), "is no number; accepted"));
    }
}

TEST_CASE("judge: the violation is the sum of the excesses, and of a metric the value at the best epoch counts") {
    Individual one = with_metric("latency");
    one.parameters = 150;
    const std::vector<Limit> limits{parse_limit("metric.latency <= 10"), parse_limit("parameters <= 100"),
                                    parse_limit("loss <= 1"), parse_limit("metric.latency >= 20")};
    const std::vector<Cost> costs{{.quantity = Quantity::seconds},
                                  {.quantity = Quantity::metric, .metric = "latency", .is_maximised = true}};

    CHECK_FALSE(judge(costs, limits, one));

    CHECK(one.violation == doctest::Approx(1 + 0.5));
    CHECK(one.objective_metrics[0] == 20);
    CHECK(std::isnan(one.objective_metrics[1]));
}

TEST_CASE("judge: f1 is that of the best epoch, as an objective and as a limit; unknown if the epoch has none") {
    Individual one = evaluated(1, 0.5);
    one.best_epoch = 2;
    one.curve = {{.epoch = 1, .validation_f1 = 0.9}, {.epoch = 2, .validation_f1 = 0.5}, {.epoch = 3}};
    Cost cost = *parse_cost("-f1");
    cost.place = 1;
    const std::vector<Limit> limits{parse_limit("f1 >= 0.75")};

    CHECK_FALSE(judge(std::vector{cost}, limits, one));

    CHECK(one.objective_metrics[1] == 0.5);
    CHECK(cost_of(cost, one) == -0.5);
    CHECK(one.violation == doctest::Approx(1.0 / 3));
    one.best_epoch = 3;
    CHECK_FALSE(judge(std::vector{cost}, limits, one));
    CHECK(cost_of(cost, one) == infinity);
    CHECK(one.violation == infinity);
}

TEST_CASE("judge: a metric that was not reported is a problem that names the metrics that were") {
    Individual one = with_metric("latency");
    const auto of_limit = judge({}, std::vector{parse_limit("metric.latancy <= 5")}, one);
    Individual none = evaluated(1, 0.5);
    const auto of_cost = judge(std::vector{*parse_cost("metric.f1")}, {}, none);

    REQUIRE(of_limit);
    CHECK(contains(*of_limit, "it reported no metric 'latancy'"));
    CHECK(contains(*of_limit, "(did you mean 'latency'?); it reported latency"));
    REQUIRE(of_cost);
    CHECK(contains(*of_cost, "it reported none"));
}

TEST_CASE("better: individuals that keep the limits come first, then the smallest violation, then loss") {
    const std::vector<Individual> in_order{evaluated(5, 0.9),      pruned(4, 1, 0.7),      breaking(3, 0.1, 0.01),
                                           breaking(2, 0.2, 0.01), breaking(1, 0.05, 0.5), breaking(6, 0, infinity)};

    for (std::size_t a = 0; a < in_order.size(); ++a) {
        for (std::size_t b = 0; b < in_order.size(); ++b) {
            CHECK(better(in_order[a], in_order[b]) == (a < b));
        }
    }
    for (std::size_t i = 1; i < in_order.size(); ++i) {
        CHECK(comparable_loss(in_order[i - 1]) <= comparable_loss(in_order[i]));
    }
    CHECK(comparable_loss(in_order[1]) < comparable_loss(in_order[2]));
    CHECK(comparable_loss(in_order[3]) < comparable_loss(in_order[4]));
    CHECK(std::isfinite(comparable_loss(in_order.back())));
}

TEST_CASE("the best individual of a population keeps the limits, if any does") {
    Population population(ExchangeKind::none, 1);
    population.merge(breaking(1, 0.1, 0.2));
    CHECK(population.best()->id.sequence() == 1);

    population.merge(evaluated(2, 0.9));

    CHECK(population.best()->id.sequence() == 2);
}

}  // namespace finch::search
