#include "finch/search/attempts.hpp"

#include "samples.hpp"

#include <doctest/doctest.h>

namespace finch::search {
namespace {

/// Returns a population of eight unfinished individuals. Each individual is in training in start 3, on its own worker
/// of two ranks.
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

/// Returns the notes of eight workers. All ranks were ended from outside, but one rank of `worker` left no note.
EndNotes all_but(std::int32_t worker) {
    EndNotes notes;
    for (std::int32_t i = 0; i < 8; ++i) {
        notes[i].external = i == worker ? 1 : 2;
    }
    return notes;
}

}  // namespace

TEST_CASE("charge_deaths: only the individual of the process that died is charged, and fails at its second death") {
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

TEST_CASE("charge_deaths: a rank's own fault charges the individual, regardless of the notes of other ranks") {
    EndNotes notes = all_but(-1);
    notes[2].own_fault = 1;

    const auto charged = charge_deaths(in_training(), 3, notes, false, 100);

    REQUIRE(charged.size() == 1);
    CHECK(charged[0].attempt.worker == 2);
}

TEST_CASE("charge_deaths: if a rank noted its own fault, workers without a note are not charged") {
    EndNotes notes = all_but(5);
    notes.erase(1);
    notes[2].own_fault = 1;

    const auto charged = charge_deaths(in_training(), 3, notes, false, 100);

    REQUIRE(charged.size() == 1);
    CHECK(charged[0].attempt.worker == 2);
}

TEST_CASE("charge_deaths: a preemption, a start without any note, and an earlier start charge no individual") {
    CHECK(charge_deaths(in_training(), 3, all_but(-1), false, 100).empty());
    CHECK(charge_deaths(in_training(), 3, {}, false, 100).empty());
    CHECK(charge_deaths(in_training(), 4, all_but(5), false, 100).empty());
}

TEST_CASE("charge_deaths: with one training at a time, an end without notes charges the individual in training") {
    Population population = in_training();
    Individual tried = *population.find(Id::make(0, 1, 3));
    tried.attempt = {4, 0};
    population.merge(tried);

    const auto charged = charge_deaths(population, 4, {}, true, 100);

    REQUIRE(charged.size() == 1);
    CHECK(charged[0].id == tried.id);
}

TEST_CASE("charge_deaths: progress since the last death resets the count of deaths to one") {
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

TEST_CASE("charge_deaths: the charged record supersedes the uncharged record, and not the reverse") {
    Population population = in_training();
    const auto charged = charge_deaths(population, 3, all_but(5), false, 100);
    const Individual before = *population.find(charged[0].id);

    CHECK(supersedes(charged[0], before));
    CHECK_FALSE(supersedes(before, charged[0]));
}

TEST_CASE("progress_of: increases with training progress and with deaths, and a result counts more than both") {
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
