// How good a propagator searches a problem (problems.hpp), with simulated workers: durations are lognormal around a
// minute, and every result is known at once to all (one island, one population).
//   bench_search PROPAGATOR PROBLEM WORKERS EVALUATIONS FIRST_SEED LAST_SEED [SIGMA]
// Prints the median, quartiles and the worst of the best values, how many runs end below 1, and seconds a run. Of a
// noisy problem the value is that of the best as it was measured, without its noise.
//   bench_search space PROBLEM
// Prints its genes as JSON.
//   bench_search evaluate PROBLEM SEED
// Reads genomes, a line each, and answers with what is measured and what is true.
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/search/propagator.hpp"

#include "problems.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <queue>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::search;

namespace {

PropagatorOptions options_of(const std::string& name, std::int64_t workers) {
    if (name == "genetic") {
        return GeneticOptions{.population = workers};
    }
    if (name == "random") {
        return RandomSearchOptions{};
    }
    if (name == "evolution") {
        return EvolutionOptions{};
    }
    if (name == "screened") {
        return ScreenedOptions{};
    }
    if (name == "tpe") {
        return TpeOptions{};
    }
    if (name == "auto") {
        return AutomaticOptions{};
    }
    if (name == "cmaes") {
        return CmaEsOptions{};
    }
    if (name == "swarm") {
        return SwarmOptions{};
    }
    if (name == "nelder_mead") {
        return NelderMeadOptions{};
    }
    throw std::runtime_error("no propagator " + name);
}

struct Run {
    std::string propagator;
    std::string problem;
    std::int32_t workers;
    std::int64_t evaluations;
    double sigma;

    /// The best value, without its noise.
    [[nodiscard]] double best(std::uint64_t seed) const {
        const bench::Problem task = bench::find_problem(problem, seed);
        const auto breeder = make_propagator(options_of(propagator, workers), task.space, seed);
        Population population(ExchangeKind::none, 1);
        using Due = std::pair<double, std::int32_t>;
        std::priority_queue<Due, std::vector<Due>, std::greater<>> due;
        std::vector<Individual> running(static_cast<std::size_t>(workers));
        std::vector<std::uint32_t> bred(static_cast<std::size_t>(workers));
        std::int64_t started = 0;
        std::int64_t ended = 0;
        const auto start = [&](std::int32_t worker, double now) {
            if (started == evaluations) {
                return;
            }
            Individual individual;
            const auto number = static_cast<std::size_t>(worker);
            individual.id = Id::make(0, static_cast<std::uint32_t>(worker), ++bred[number]);
            RandomStream random(seed, Purpose::breeding, individual.id.value);
            const Stage stage{.budget_used = static_cast<double>(ended) / static_cast<double>(evaluations),
                              .evaluations = evaluations,
                              .workers = workers,
                              .births = static_cast<std::uint64_t>(started++)};
            Offspring offspring = breeder->breed(population, 0, stage, random);
            individual.genome = std::move(offspring.genome);
            individual.bred_by = offspring.bred_by;
            individual.parents = offspring.parents;
            individual.breeding = offspring.breeding;
            individual.started = now;
            population.merge(individual);
            running[number] = std::move(individual);
            RandomStream duration(seed, Purpose::pretended_duration, running[number].id.value);
            due.emplace(now + 60 * std::exp(sigma * duration.normal()), worker);
        };
        for (std::int32_t worker = 0; worker < workers; ++worker) {
            start(worker, 1);
        }
        while (!due.empty()) {
            const auto [now, worker] = due.top();
            due.pop();
            Individual& individual = running[static_cast<std::size_t>(worker)];
            RandomStream noise(seed, Purpose::function_noise, individual.id.value);
            individual.loss = task.measured(individual.genome, noise);
            individual.outcome = Outcome::evaluated;
            individual.finished = now;
            ++ended;
            population.merge(std::move(individual));
            start(worker, now);
        }
        return task.truth(population.best()->genome);
    }
};

double quantile(const std::vector<double>& sorted, double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

void evaluate(const std::string& name, std::uint64_t seed) {
    const bench::Problem problem = bench::find_problem(name, seed);
    std::uint64_t number = 0;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        Genome genome;
        for (double value = 0; words >> value;) {
            genome.push_back(value);
        }
        genome = canonical(problem.space, std::move(genome));
        RandomStream noise(seed, Purpose::function_noise, ++number);
        const double measured = problem.measured(genome, noise);
        fmt::print("{} {}\n", measured, problem.truth(genome));
        std::fflush(stdout);
    }
}

void print_searches(const std::vector<std::string>& words) {
    const Run run{.propagator = words[0],
                  .problem = words[1],
                  .workers = std::stoi(words[2]),
                  .evaluations = std::stoll(words[3]),
                  .sigma = words.size() > 6 ? std::stod(words[6]) : 0.5};
    std::vector<double> best;
    const double began = steady_seconds();
    const std::uint64_t last = std::stoull(words[5]);
    for (std::uint64_t seed = std::stoull(words[4]); seed <= last; ++seed) {
        best.push_back(run.best(seed));
    }
    const double seconds = (steady_seconds() - began) / static_cast<double>(best.size());
    std::sort(best.begin(), best.end());
    const auto successes = std::count_if(best.begin(), best.end(), [](double value) { return value < 1; });
    fmt::print(
        "{:10} {:14} W {:4} E {:6}: median {:9.3g} [{:9.3g}, {:9.3g}] worst {:9.3g}, {}/{} below 1, {:.2f} s a "
        "run\n",
        words[0], words[1], run.workers, run.evaluations, quantile(best, 0.5), quantile(best, 0.25),
        quantile(best, 0.75), best.back(), successes, best.size(), seconds);
}

}  // namespace

int main(int count, char** arguments) {
    const std::vector<std::string> words(arguments + 1, arguments + count);
    try {
        if (words.size() == 2 && words[0] == "space") {
            fmt::print("{}\n", bench::space_json(bench::find_problem(words[1], 1).space));
        } else if (words.size() == 3 && words[0] == "evaluate") {
            evaluate(words[1], std::stoull(words[2]));
        } else if (words.size() >= 6) {
            print_searches(words);
        } else {
            fmt::print(stderr,
                       "usage: bench_search PROPAGATOR mixed|table|FUNCTION[:DIMENSIONS][:shifted|:rotated] WORKERS "
                       "EVALUATIONS FIRST_SEED LAST_SEED [SIGMA]\n");
            return 2;
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_search: {}\n", error.what());
        return 2;
    }
}
