// L-SHADE without generations: tests that its draws, its memory and its population sizes match the paper.
#include "fit.hpp"
#include "search/propagators/evolution.hpp"
#include "simulated_search.hpp"

#include <array>
#include <cmath>
#include <map>
#include <numbers>

using namespace finch;
using namespace finch::search;

namespace {

constexpr std::size_t members = 20;
constexpr std::size_t few_genes = 4;

Id id_of(std::size_t number) {
    return Id::make(0, 0, static_cast<std::uint32_t>(number + 1));
}

/// A population of 20 individuals. The k-th best individual has the loss k and the slot k.
class Filled {
public:
    Filled() : space_(reals(few_genes)), phase_(space_, 5000, {}) {
        RandomStream random(3, Purpose::test);
        for (std::size_t k = 0; k < members; ++k) {
            phase_.take(
                {random_point(few_genes, random), static_cast<double>(k), id_of(k), static_cast<std::int32_t>(k)}, {},
                0, random);
        }
        REQUIRE(phase_.is_filled());
    }

    /// Adds a result for the slot of the worst member. Its loss is lower by `gain`, or higher than all losses if `gain`
    /// is 0.
    void add(double gain, double scale_factor, double crossover_rate, double done = 0) {
        RandomStream random(++results_, Purpose::test);
        const double loss = gain > 0 ? phase_.members().back().loss - gain : 1e6;
        phase_.take(
            {random_point(few_genes, random), loss, id_of(100 + results_), 0},
            {.slot = phase_.members().back().slot, .scale_factor = scale_factor, .crossover_rate = crossover_rate},
            done, random);
    }

    [[nodiscard]] std::vector<Offspring> trials(std::size_t count) const {
        std::vector<Offspring> all;
        for (std::size_t i = 0; i < count; ++i) {
            RandomStream random(i, Purpose::breeding);
            all.push_back(phase_.trial(space_, random));
        }
        return all;
    }

    [[nodiscard]] std::size_t size() const { return phase_.members().size(); }

private:
    Space space_;
    DifferentialEvolution phase_;
    std::uint64_t results_ = 0;
};

double normal_share(double x, double middle) {
    return 0.5 * std::erfc((middle - x) / 0.1 / std::numbers::sqrt2);
}

/// Returns the distribution function of a Cauchy distribution around `middle`, truncated to values above 0.
double cauchy_share(double x, double middle) {
    const auto share = [=](double at) { return 0.5 + std::atan((at - middle) / 0.1) / std::numbers::pi; };
    return (share(x) - share(0)) / (1 - share(0));
}

/// Checks that F and CR are drawn around the six memory entries, with the same probability for each entry.
void check_draws(const std::vector<Offspring>& trials, const std::array<double, 6>& scale_factors,
                 const std::array<double, 6>& crossover_rates) {
    std::vector<double> scales;
    std::vector<double> rates;
    int largest = 0;
    for (const Offspring& trial : trials) {
        double scale = 0;
        double rate = 0;
        double below_one = 0;
        double between = 0;
        for (std::size_t entry = 0; entry < 6; ++entry) {
            scale += cauchy_share(trial.breeding.scale_factor, scale_factors[entry]);
            below_one += cauchy_share(1, scale_factors[entry]);
            const double at_zero = normal_share(0, crossover_rates[entry]);
            rate += normal_share(trial.breeding.crossover_rate, crossover_rates[entry]) - at_zero;
            between += normal_share(1, crossover_rates[entry]) - at_zero;
        }
        largest += trial.breeding.scale_factor == 1 ? 1 : 0;
        if (trial.breeding.scale_factor < 1) {
            scales.push_back(scale / below_one);
        }
        if (trial.breeding.crossover_rate > 0 && trial.breeding.crossover_rate < 1) {
            rates.push_back(rate / between);
        }
    }
    CHECK(largest > 0);
    CHECK(distance_from_uniform(scales) < 1);
    CHECK(distance_from_uniform(rates) < 1);
}

}  // namespace

TEST_CASE("differential evolution: F is drawn from a Cauchy and CR from a normal around the memory, initially 0.5") {
    constexpr std::array half{0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    check_draws(Filled().trials(20'000), half, half);
}

TEST_CASE("differential evolution: any member is the target, one of the best 11 % is the leader, both are parents") {
    std::map<double, int> targets;
    std::map<double, int> leaders;
    for (const Offspring& trial : Filled().trials(20'000)) {
        ++targets[static_cast<double>(trial.parents[0].sequence() - 1)];
        ++leaders[static_cast<double>(trial.parents[1].sequence() - 1)];
        CHECK(trial.breeding.slot == static_cast<std::int32_t>(trial.parents[0].sequence() - 1));
    }
    std::map<double, double> uniform;
    for (std::size_t k = 0; k < members; ++k) {
        uniform[static_cast<double>(k)] = 1.0 / members;
    }
    CHECK(misfit(targets, uniform) < 1);
    CHECK(misfit(leaders, {{0, 0.5}, {1, 0.5}}) < 1);
}

// The Lehmer mean of F and CR (Tanabe and Fukunaga 2014, equations 7 to 9): sum of w x² / sum of w x, weighted by the
// gain.
TEST_CASE("differential evolution: each set of results of the population's size updates the oldest memory entry") {
    Filled one;
    one.add(1, 0.4, 0.1);
    one.add(3, 0.8, 0.9);
    for (std::size_t i = 2; i < members; ++i) {
        one.add(0, 0.2, 0.3);
    }
    constexpr double scale = (1 * 0.4 * 0.4 + 3 * 0.8 * 0.8) / (1 * 0.4 + 3 * 0.8);
    constexpr double rate = (1 * 0.1 * 0.1 + 3 * 0.9 * 0.9) / (1 * 0.1 + 3 * 0.9);
    check_draws(one.trials(20'000), {scale, 0.5, 0.5, 0.5, 0.5, 0.5}, {rate, 0.5, 0.5, 0.5, 0.5, 0.5});
    for (std::size_t i = 0; i < members; ++i) {
        one.add(i == 0 ? 1 : 0, 0.3, 0.6);
    }
    check_draws(one.trials(20'000), {scale, 0.3, 0.5, 0.5, 0.5, 0.5}, {rate, 0.6, 0.5, 0.5, 0.5, 0.5});
}

TEST_CASE("differential evolution: the population shrinks linearly with the budget, from 20 to 6") {
    for (const auto& [done, size] : {std::pair{0.0, 20}, {0.5, 13}, {1.0, 6}}) {
        Filled one;
        for (std::size_t i = 0; i < members; ++i) {
            one.add(0, 0.5, 0.5, done);
        }
        CHECK(one.size() == static_cast<std::size_t>(size));
    }
}

namespace {

double square_of(double x) {
    return x * x;
}

/// Runs the paper's loop with generations over arrays on [0, 1], and returns the number of evaluations to reach
/// `target`, at most `budget`. A coordinate that leaves the bounds is drawn between the parent and the bound, as in
/// Finch.
double textbook(const Loss& loss, std::size_t dimensions, double target, int budget, std::uint64_t seed) {
    RandomStream random(seed, Purpose::test, 77);
    struct Member {
        UnitGenome x;
        double value = 0;
    };
    const auto value_at = [&](const UnitGenome& x) {
        Genome genome;
        for (const double u : x) {
            genome.push_back(10 * u - 5);
        }
        return loss(genome);
    };
    const auto index = [&](std::size_t count) { return static_cast<std::size_t>(random.below(count)); };
    constexpr std::size_t first_size = 20;
    std::array<double, 6> memory_f{};
    std::array<double, 6> memory_cr{};
    memory_f.fill(0.5);
    memory_cr.fill(0.5);
    std::size_t memory_at = 0;
    std::vector<Member> population;
    std::vector<UnitGenome> archive;
    int evaluations = 0;
    for (std::size_t i = 0; i < first_size; ++i) {
        population.push_back({random_point(dimensions, random), 0});
        population.back().value = value_at(population.back().x);
        if (++evaluations; population.back().value <= target) {
            return evaluations;
        }
    }
    while (evaluations < budget) {
        std::sort(population.begin(), population.end(),
                  [](const Member& a, const Member& b) { return a.value < b.value; });
        const std::size_t size = population.size();
        std::vector<Member> next = population;
        std::array<double, 5> sums{};  // sums of: gain, gain · F, gain · F², gain · CR, gain · CR²
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t entry = index(6);
            double f = 0;
            while (f <= 0) {
                f = memory_f[entry] + 0.1 * std::tan(std::numbers::pi * (random.uniform() - 0.5));
            }
            f = std::min(f, 1.0);
            const double cr = std::clamp(memory_cr[entry] + 0.1 * random.normal(), 0.0, 1.0);
            const std::size_t leading =
                std::max<std::size_t>(2, static_cast<std::size_t>(std::lround(0.11 * static_cast<double>(size))));
            const UnitGenome& best = population[index(leading)].x;
            std::size_t r1 = i;
            while (r1 == i) {
                r1 = index(size);
            }
            std::size_t r2 = i;
            while (r2 == i || r2 == r1) {
                r2 = index(size + archive.size());
            }
            const UnitGenome& minus = r2 < size ? population[r2].x : archive[r2 - size];
            const UnitGenome& parent = population[i].x;
            UnitGenome trial = parent;
            const std::size_t always = index(dimensions);
            for (std::size_t j = 0; j < dimensions; ++j) {
                if (j == always || random.uniform() < cr) {
                    const double to = parent[j] + f * (best[j] - parent[j]) + f * (population[r1].x[j] - minus[j]);
                    trial[j] = to < 0   ? parent[j] * random.uniform()
                               : to > 1 ? 1 - (1 - parent[j]) * random.uniform()
                                        : to;
                }
            }
            const double value = value_at(trial);
            if (++evaluations; value <= target) {
                return evaluations;
            }
            if (value <= population[i].value) {
                if (const double gain = population[i].value - value; gain > 0) {
                    archive.push_back(parent);
                    sums[0] += gain;
                    sums[1] += gain * f;
                    sums[2] += gain * f * f;
                    sums[3] += gain * cr;
                    sums[4] += gain * cr * cr;
                }
                next[i] = {trial, value};
            }
        }
        population = std::move(next);
        if (sums[0] > 0) {
            memory_f[memory_at] = sums[2] / sums[1];
            memory_cr[memory_at] = sums[3] > 0 ? sums[4] / sums[3] : 0;
            memory_at = (memory_at + 1) % 6;
        }
        const double left = 20 - 14.0 * evaluations / budget;
        const auto most = std::max<std::size_t>(6, static_cast<std::size_t>(std::lround(left)));
        std::sort(population.begin(), population.end(),
                  [](const Member& a, const Member& b) { return a.value < b.value; });
        population.resize(std::min(population.size(), most));
        while (static_cast<double>(archive.size()) > 1.4 * static_cast<double>(population.size())) {
            archive.erase(archive.begin() + static_cast<std::ptrdiff_t>(index(archive.size())));
        }
    }
    return std::numeric_limits<double>::infinity();
}

double tilted_ellipsoid(const Genome& x) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        sum += std::pow(1e4, static_cast<double>(i) / static_cast<double>(x.size() - 1)) * square_of(x[i] - 1);
    }
    return sum;
}

}  // namespace

TEST_CASE("evolution without CMA-ES and mutation needs as many evaluations as the paper's generational loop") {
    struct Case {
        std::string name;
        Loss loss;
        double target;
    };
    for (const Case& one : {Case{"sphere", sphere, 1e-6}, Case{"ellipsoid", tilted_ellipsoid, 1e-4},
                            Case{"rosenbrock", rosenbrock, 1e-2}}) {
        CAPTURE(one.name);
        constexpr int budget = 6000;
        constexpr std::size_t dimensions = 6;
        const double median = median_over_seeds(31, [&](std::uint64_t seed) {
            return evaluations_to(search_for(EvolutionOptions{.cma_share = 0, .mutation_share = 0}, reals(dimensions),
                                             one.loss, budget, 1, seed),
                                  one.target);
        });
        const double expected = median_over_seeds(
            101, [&](std::uint64_t seed) { return textbook(one.loss, dimensions, one.target, budget, seed); });
        CHECK(median < 1.1 * expected);
        CHECK(median > 0.8 * expected);
    }
}
