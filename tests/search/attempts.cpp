#include "finch/search/attempts.hpp"

#include "samples.hpp"

#include <doctest/doctest.h>

namespace finch::search {
namespace {

/// Eight workers of two ranks, an unfinished individual each, in training in start 3.
Population in_training() {
    Population population(ExchangeKind::none, 1);
    for (std::uint32_t worker = 0; worker < 8; ++worker) {
        Individual individual = samples::bred(worker + 1);
        individual.ranks = 2;
        individual.attempt = {3, static_cast<std::int32_t>(worker)};
        population.merge(individual);
    }
    return population;
}

/// Everybody was ended from outside, but for `worker`, of which one rank left no note.
EndNotes all_but(std::int32_t worker) {
    EndNotes notes;
    for (std::int32_t i = 0; i < 8; ++i) {
        notes[i].external = i == worker ? 1 : 2;
    }
    return notes;
}

}  // namespace

TEST_CASE("only the individual whose own process died is charged, and given up at the second death") {
    Population population = in_training();

    const auto first = charge_deaths(population, 3, all_but(5), false, 100);
    REQUIRE(first.size() == 1);
    CHECK(first[0].id == Id::make(0, 1, 6));
    CHECK(first[0].outcome == Outcome::unfinished);
    CHECK(population.merge(first[0]));
    Individual again = first[0];
    again.attempt.restart = 4;
    population.merge(again);
    const auto second = charge_deaths(population, 4, all_but(5), false, 100);

    REQUIRE(second.size() == 1);
    CHECK(second[0].outcome == Outcome::failed);
    CHECK(second[0].finished == 100);
    CHECK(second[0].problem.find("2 times") != std::string::npos);
    CHECK(population.merge(second[0]));
    CHECK(population.finished() == 1);
}

TEST_CASE("a fault of its own charges, whatever its other ranks say") {
    EndNotes notes = all_but(-1);
    notes[2].own_fault = 1;

    const auto charged = charge_deaths(in_training(), 3, notes, false, 100);

    REQUIRE(charged.size() == 1);
    CHECK(charged[0].attempt.worker == 2);
}

TEST_CASE("where the own_fault one is known, those that were killed before they could leave a note are not charged") {
    EndNotes notes = all_but(5);
    notes.erase(1);
    notes[2].own_fault = 1;

    const auto charged = charge_deaths(in_training(), 3, notes, false, 100);

    REQUIRE(charged.size() == 1);
    CHECK(charged[0].attempt.worker == 2);
}

TEST_CASE("a preemption charges nobody, nor does a start that ended without a trace, nor one before the last") {
    CHECK(charge_deaths(in_training(), 3, all_but(-1), false, 100).empty());
    CHECK(charge_deaths(in_training(), 3, {}, false, 100).empty());
    CHECK(charge_deaths(in_training(), 4, all_but(5), false, 100).empty());
}

TEST_CASE("one at a time, an end without a trace charges who was in training") {
    Population population = in_training();
    Individual tried = *population.find(Id::make(0, 1, 3));
    tried.attempt = {4, 0};
    population.merge(tried);

    const auto charged = charge_deaths(population, 4, {}, true, 100);

    REQUIRE(charged.size() == 1);
    CHECK(charged[0].id == tried.id);
}

TEST_CASE("progress between two deaths forgives the first") {
    Individual individual = *in_training().find(Id::make(0, 1, 6));
    individual.attempt = {3, 5, 1, 0.25};
    individual.progress = 0.5;
    Population population(ExchangeKind::none, 1);
    population.merge(individual);

    const auto charged = charge_deaths(population, 3, all_but(5), false, 100);

    REQUIRE(charged.size() == 1);
    CHECK(charged[0].attempt.deaths == 1);
    CHECK(charged[0].attempt.progress_at_death == 0.5);
    CHECK(charged[0].outcome == Outcome::unfinished);
}

TEST_CASE("a charged record wins over the one that it was made of, in any order") {
    Population population = in_training();
    const auto charged = charge_deaths(population, 3, all_but(5), false, 100);
    const Individual before = *population.find(charged[0].id);

    CHECK(supersedes(charged[0], before));
    CHECK_FALSE(supersedes(before, charged[0]));
}

TEST_CASE("progress grows with results, shares of trainings and deaths, and a result counts more than all of them") {
    Population population = in_training();
    const double before = progress_of(population);
    Individual one = *population.find(Id::make(0, 1, 1));
    one.progress = 0.25;
    population.merge(one);
    const double further = progress_of(population);
    one.attempt.deaths = 1;
    one.attempt.progress_at_death = 0.25;
    population.merge(one);
    const double died = progress_of(population);
    one.progress = 1;
    one.attempt.deaths = 9;
    population.merge(one);
    const double nearly = progress_of(population);
    one.outcome = Outcome::evaluated;
    population.merge(one);

    CHECK(before == 0);
    CHECK(further > before);
    CHECK(died > further);
    CHECK(nearly < 1.0000001);
    CHECK(progress_of(population) == 1);
}

}  // namespace finch::search
