// Searches the front of a test function with several objectives, with simulated workers. Evaluations have lognormal
// durations with a median of one minute. All workers know every result immediately.
//   bench_fronts PROPAGATOR PROBLEM WORKERS EVALUATIONS FIRST_SEED LAST_SEED
// PROBLEM: zdt1, zdt2, zdt3, zdt4, zdt6 (Zitzler, Deb and Thiele 2000; 2 objectives; 30 genes, zdt4 and zdt6: 10),
// dtlz1, dtlz2, dtlz7 (Deb, Thiele, Laumanns and Zitzler 2005; 3 objectives; 7, 12 and 22 genes). Prints one line per
// seed: the seed, the CPU seconds and the non-dominated objective values of all evaluations, as JSON. fronts.py
// compares them with other libraries.
#include "finch/base/format.hpp"
#include "finch/search/objectives.hpp"

#include "virtual_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::search;

namespace {

using Values = std::vector<double>;
constexpr double pi = std::numbers::pi;

struct Problem {
    std::size_t objectives;
    std::size_t genes;
    double low;  ///< of all genes but the first, whose range is [0, 1]
    double high;
    Values (*at)(const Genome& genes);
};

/// Sums f(x) over the genes from `first` on.
template <class Function>
double sum_from(std::size_t first, const Genome& genes, const Function& f) {
    return std::transform_reduce(genes.begin() + static_cast<std::ptrdiff_t>(first), genes.end(), 0.0, std::plus<>(),
                                 f);
}

double identity(double x) {
    return x;
}

double zdt_g(const Genome& x) {
    return 1 + 9 * sum_from(1, x, identity) / (static_cast<double>(x.size()) - 1);
}

double rastrigin_term(double x, double frequency) {
    return x * x - std::cos(frequency * pi * x);
}

/// The spherical front of DTLZ2 and the plane of DTLZ1 for three objectives.
Values dtlz2(const Genome& x) {
    const double g = sum_from(2, x, [](double y) { return (y - 0.5) * (y - 0.5); });
    const double a = x[0] * pi / 2;
    const double b = x[1] * pi / 2;
    return {(1 + g) * std::cos(a) * std::cos(b), (1 + g) * std::cos(a) * std::sin(b), (1 + g) * std::sin(a)};
}

Values dtlz1(const Genome& x) {
    const double g = 100 * sum_from(2, x, [](double y) { return 1 + rastrigin_term(y - 0.5, 20); });
    return {0.5 * (1 + g) * x[0] * x[1], 0.5 * (1 + g) * x[0] * (1 - x[1]), 0.5 * (1 + g) * (1 - x[0])};
}

Values dtlz7(const Genome& x) {
    const double g = 1 + 9 * sum_from(2, x, identity) / (static_cast<double>(x.size()) - 2);
    double h = 3;
    for (const double f : {x[0], x[1]}) {
        h -= f / (1 + g) * (1 + std::sin(3 * pi * f));
    }
    return {x[0], x[1], (1 + g) * h};
}

const std::map<std::string, Problem> problems{
    {"zdt1",
     {2, 30, 0, 1,
      [](const Genome& x) {
          const double g = zdt_g(x);
          return Values{x[0], g * (1 - std::sqrt(x[0] / g))};
      }}},
    {"zdt2",
     {2, 30, 0, 1,
      [](const Genome& x) {
          const double g = zdt_g(x);
          return Values{x[0], g * (1 - std::pow(x[0] / g, 2))};
      }}},
    {"zdt3",
     {2, 30, 0, 1,
      [](const Genome& x) {
          const double g = zdt_g(x);
          return Values{x[0], g * (1 - std::sqrt(x[0] / g) - x[0] / g * std::sin(10 * pi * x[0]))};
      }}},
    {"zdt4",
     {2, 10, -5, 5,
      [](const Genome& x) {
          const double g = 1 + sum_from(1, x, [](double y) { return 10 + y * y - 10 * std::cos(4 * pi * y); });
          return Values{x[0], g * (1 - std::sqrt(x[0] / g))};
      }}},
    {"zdt6",
     {2, 10, 0, 1,
      [](const Genome& x) {
          const double f = 1 - std::exp(-4 * x[0]) * std::pow(std::sin(6 * pi * x[0]), 6);
          const double g = 1 + 9 * std::pow(sum_from(1, x, identity) / 9, 0.25);
          return Values{f, g * (1 - std::pow(f / g, 2))};
      }}},
    {"dtlz1", {3, 7, 0, 1, dtlz1}},
    {"dtlz2", {3, 12, 0, 1, dtlz2}},
    {"dtlz7", {3, 22, 0, 1, dtlz7}},
};

void print_front(const Problem& problem, const std::string& propagator, std::int32_t workers, std::int64_t evaluations,
                 std::uint64_t seed) {
    const std::clock_t start = std::clock();
    bench::VirtualSearch one{.space = {},
                             .propagator = bench::propagator_named(propagator, workers),
                             .workers = workers,
                             .evaluations = evaluations,
                             .seed = seed,
                             .course = [&](const Genome& genome, Id id) {
                                 RandomStream duration(seed, Purpose::pretended_duration, id.value);
                                 const Values values = problem.at(genome);
                                 return bench::Course{.seconds = 60 * std::exp(0.5 * duration.normal()),
                                                      .losses = {values[0]},
                                                      .metrics = {values.begin() + 1, values.end()}};
                             }};
    for (std::size_t gene = 0; gene < problem.genes; ++gene) {
        one.space.genes.push_back(
            {fmt::format("x{}", gene), gene == 0 ? RealGene{0, 1} : RealGene{problem.low, problem.high}});
    }
    for (std::size_t i = 1; i < problem.objectives; ++i) {
        one.costs.push_back({.quantity = Quantity::metric, .metric = fmt::format("f{}", i), .place = i - 1});
    }
    const bench::Found found = bench::run(one);
    std::vector<const Individual*> all;
    for (const Individual& individual : found.all) {
        all.push_back(&individual);
    }
    fmt::print("[{}, {:.3f}, [", seed, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    const char* separator = "";
    for (const Individual* individual : pareto_front(all, one.costs)) {
        const auto values = point_of(*individual, one.costs).values;
        fmt::print("{}[{}]", separator,
                   fmt::join(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(problem.objectives), ", "));
        separator = ", ";
    }
    fmt::print("]]\n");
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
    const std::vector<std::string> words(arguments + 1, arguments + count);
    if (words.size() != 6 || !problems.contains(words[1])) {
        fmt::print(stderr,
                   "usage: bench_fronts PROPAGATOR zdt1|zdt2|zdt3|zdt4|zdt6|dtlz1|dtlz2|dtlz7 WORKERS EVALUATIONS "
                   "FIRST_SEED LAST_SEED\n");
        return 2;
    }
    try {
        for (std::uint64_t seed = std::stoull(words[4]); seed <= std::stoull(words[5]); ++seed) {
            print_front(problems.at(words[1]), words[0], std::stoi(words[2]), std::stoll(words[3]), seed);
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_fronts: {}\n", error.what());
        return 2;
    }
}
