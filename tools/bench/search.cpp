// Measures how well a propagator searches a problem (problems.hpp), with simulated workers. Evaluations have lognormal
// durations with a median of one minute. All workers know every result immediately (one island, one population).
//   bench_search PROPAGATOR[:N][+halving|+final] PROBLEM WORKERS EVALUATIONS FIRST_SEED LAST_SEED [SIGMA]
// Prints the best value and the CPU seconds of each seed. Then prints the median, the quartiles and the worst of the
// best values, the number of runs with a best value below 1, and the seconds per run. For a noisy problem, the best
// value is the value without noise of the genome with the best measurement. `+halving` prunes and may train as many
// epochs as EVALUATIONS complete evaluations have. `+final` uses the last 24 evaluations for the final choice. `auto:N`
// switches an island to `evolution` after N results. `cmaes:N` has N samples per generation.
//   bench_search space PROBLEM
// Prints the genes of the problem as JSON.
//   bench_search evaluate PROBLEM SEED
// Reads genomes from standard input, one per line. Answers each with its measured value and its value without noise.
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"

#include "problems.hpp"
#include "simulate/tables.hpp"
#include "virtual_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::search;
using finch::simulate::quantile;

namespace {

struct Comparison {
    std::string search;
    std::string problem;
    std::int32_t workers;
    std::int64_t evaluations;
    double sigma;

    /// Runs one search. Returns the value without noise of the best genome.
    [[nodiscard]] double best(std::uint64_t seed) const {
        const std::size_t plus = std::min(search.find('+'), search.size());
        const std::string mode = search.substr(plus);
        const bench::Problem task = bench::find_problem(problem, seed);
        const auto course = [&](const Genome& genome, Id id) {
            RandomStream noise(seed, Purpose::function_noise, id.value);
            RandomStream duration(seed, Purpose::pretended_duration, id.value);
            const double seconds = 60 * std::exp(sigma * duration.normal());
            return bench::Course{.seconds = seconds / static_cast<double>(task.epochs),
                                 .losses = task.measured(genome, noise)};
        };
        bench::VirtualSearch one{.space = task.space,
                                 .propagator = bench::propagator_named(search.substr(0, plus), workers),
                                 .workers = workers,
                                 .epochs_each = task.epochs,
                                 .seed = seed,
                                 .course = course};
        if (mode == "+halving") {
            one.pruning = HalvingOptions{};
            one.epochs = evaluations * task.epochs;
        } else {
            one.evaluations = evaluations;
        }
        if (mode == "+final") {
            one.final_choice = FinalChoice{.space = task.space};
        }
        return task.truth(bench::run(one).best.value().genome);
    }
};

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
        const std::vector<double> curve = problem.measured(genome, noise);
        fmt::print("{} {}\n", *std::min_element(curve.begin(), curve.end()), problem.truth(genome));
        std::fflush(stdout);
    }
}

void print_searches(const std::vector<std::string>& words) {
    const Comparison comparison{.search = words[0],
                                .problem = words[1],
                                .workers = std::stoi(words[2]),
                                .evaluations = std::stoll(words[3]),
                                .sigma = words.size() > 6 ? std::stod(words[6]) : 0.5};
    std::vector<double> best;
    const double began = steady_seconds();
    const std::uint64_t last = std::stoull(words[5]);
    for (std::uint64_t seed = std::stoull(words[4]); seed <= last; ++seed) {
        const std::clock_t start = std::clock();
        best.push_back(comparison.best(seed));
        fmt::print("seed {}: {:.17g}, {:.6f} s\n", seed, best.back(),
                   static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    const double seconds = (steady_seconds() - began) / static_cast<double>(best.size());
    const auto successes = std::count_if(best.begin(), best.end(), [](double value) { return value < 1; });
    fmt::print(
        "{:10} {:14} W {:4} E {:6}: median {:9.3g} [{:9.3g}, {:9.3g}] worst {:9.3g}, {}/{} below 1, {:.2f} s a "
        "run\n",
        words[0], words[1], comparison.workers, comparison.evaluations, quantile(best, 0.5), quantile(best, 0.25),
        quantile(best, 0.75), quantile(best, 1), successes, best.size(), seconds);
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
                       "usage: bench_search PROPAGATOR[:N][+halving|+final] "
                       "mixed|table|funnels[:ripples]|trainings:FOLDER|FUNCTION[:DIMENSIONS][:shifted|:rotated] "
                       "WORKERS EVALUATIONS FIRST_SEED LAST_SEED [SIGMA]\n");
            return 2;
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_search: {}\n", error.what());
        return 2;
    }
}
