#pragma once

#include "finch/search/population.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

/// Sample individuals for the tests of the search module.
namespace finch::search::samples {

inline Individual bred(std::uint32_t number, std::int32_t island = 0) {
    Individual individual;
    individual.id = Id::make(0, 1, number);
    individual.island = island;
    individual.genome = {0.5, static_cast<double>(number)};
    return individual;
}

inline Individual ended(std::uint32_t number, Outcome outcome, double loss, std::int32_t island = 0) {
    Individual individual = bred(number, island);
    individual.outcome = outcome;
    individual.loss = loss;
    return individual;
}

inline Individual evaluated(std::uint32_t number, double loss, std::int32_t island = 0) {
    return ended(number, Outcome::evaluated, loss, island);
}

/// Returns an individual that was pruned at `rung`. Its smallest loss at that rung was `loss`.
inline Individual pruned(std::uint32_t number, std::int32_t rung, double loss, std::int32_t island = 0) {
    Individual individual = ended(number, Outcome::pruned, loss, island);
    individual.pruning.edit().rung = rung;
    individual.pruning.edit().losses.at(static_cast<std::size_t>(rung) - 1) = loss;
    return individual;
}

/// Returns a population of individuals with these genomes and the losses 1, 2, 3 …
inline Population of_genomes(const std::vector<Genome>& genomes) {
    Population population(ExchangeKind::none, 1);
    for (std::uint32_t i = 0; i < genomes.size(); ++i) {
        Individual individual = evaluated(i + 1, i + 1);
        individual.genome = genomes[i];
        population.merge(individual);
    }
    return population;
}

/// Returns an individual in which every field differs from its default.
inline Individual complete(std::uint32_t number) {
    Individual individual = evaluated(number, 0.25, 3);
    individual.generation = 7;
    individual.parents = {Id::make(1, 2, 3), Id::make(4, 5, 6)};
    individual.bred_by = Operator::crossover;
    individual.breeding = {1, 2, 0.5, 0.25, 0.75};
    individual.genome = {1e-3, 4, 2};
    individual.accuracy = 0.75;
    individual.epochs = 2;
    individual.best_epoch = 1;
    individual.problem = "none worth a word";
    individual.born = 10;
    individual.started = 11;
    individual.finished = 12;
    individual.samples_per_second = 1234.5;
    individual.training_seconds = 6.5;
    individual.joules = 162.5;
    individual.progress = 0.5;
    individual.attempt = {3, 1, 1, 0.25};
    individual.pruning = Pruning{2, 0.5, {1.5, 0.75, 0, 0, 0, 0, 0, 0}};
    individual.ranks = 2;
    individual.threads = 4;
    individual.batch_size = 16;
    individual.node = "n01";
    individual.device = "cpu";
    individual.curve = {{1, 2, 2.0, 0.25, 1.5, 0.5, 0.1, 3.5}, {2, 0, 1.0, 0.5, 1.25, 0.75, 0.05, 3.25}};
    return individual;
}

inline std::vector<Id> ids(const std::vector<const Individual*>& individuals) {
    std::vector<Id> found;
    for (const Individual* individual : individuals) {
        found.push_back(individual->id);
    }
    return found;
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace finch::search::samples
