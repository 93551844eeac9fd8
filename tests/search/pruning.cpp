// Pruning: the trainings that end early, and their rank afterwards.
#include "finch/search/pruning.hpp"

#include "finch/base/loss_order.hpp"
#include "finch/base/random.hpp"
#include "finch/search/propagator.hpp"

#include "search/samples.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <optional>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

/// Returns an individual in training that reached `rung` with `loss`.
Individual at_rung(std::uint32_t number, std::int32_t rung, double loss, std::int32_t island = 0) {
    Individual individual = pruned(number, rung, loss, island);
    individual.outcome = Outcome::unfinished;
    return individual;
}

/// Returns whether the pruning ends a training with the losses `values` so far.
bool ends(const PruningOptions& options, const std::vector<double>& values, const Population& population,
          Individual& individual) {
    return ends_early(options, values, 100, population, individual);
}

std::vector<double> power_law(double a, double b, double c, int epochs) {
    std::vector<double> values;
    for (int epoch = 1; epoch <= epochs; ++epoch) {
        values.push_back(a + b * std::pow(epoch, -c));
    }
    return values;
}

/// Computes optimistic_end() from its definition. The quantiles of t and F come from tables. The normal equations fit
/// the two factors of each law.
double reference_end(const std::vector<double>& values, double epoch, double t_90, double f_90) {
    struct Law {
        double squares, prediction, leverage;
    };
    std::vector<Law> laws;
    const auto n = static_cast<double>(values.size());
    for (int k = 0; k < 40; ++k) {
        const double c = 0.05 * std::pow(80, k / 39.0);
        long double sx = 0, sxx = 0, sy = 0, sxy = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const long double x = std::pow(static_cast<double>(i + 1), -c);
            sx += x, sxx += x * x, sy += values[i], sxy += x * values[i];
        }
        const long double determinant = n * sxx - sx * sx;
        const long double a = (sxx * sy - sx * sxy) / determinant;
        const long double b = (n * sxy - sx * sy) / determinant;
        long double squares = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            squares += std::pow(values[i] - a - b * std::pow(static_cast<double>(i + 1), -c), 2.0L);
        }
        const long double x = std::pow(epoch, -c);
        laws.push_back({static_cast<double>(squares), static_cast<double>(a + b * x),
                        static_cast<double>((sxx - 2 * x * sx + n * x * x) / determinant)});
    }
    const double least = std::min_element(laws.begin(), laws.end(), [](const Law& p, const Law& q) {
                             return p.squares < q.squares;
                         })->squares;
    double lowest = *std::min_element(values.begin(), values.end());
    for (const Law& law : laws) {
        if (law.squares <= least * (1 + f_90 / (n - 3))) {
            lowest = std::min(lowest, law.prediction - t_90 * std::sqrt(least / (n - 3) * (1 + law.leverage)));
        }
    }
    return lowest;
}

}  // namespace

TEST_CASE("Rungs: eight rungs at the first epoch times powers of the factor") {
    const auto epochs_of = [](const Rungs& rungs) {
        std::vector<std::int64_t> epochs;
        for (std::int64_t epoch = 1; epoch <= 10000; ++epoch) {
            if (rungs.contains(epoch)) {
                epochs.push_back(epoch);
            }
        }
        return epochs;
    };

    CHECK(epochs_of({1, 3}) == std::vector<std::int64_t>{1, 3, 9, 27, 81, 243, 729, 2187});
    CHECK(epochs_of({2, 2}) == std::vector<std::int64_t>{2, 4, 8, 16, 32, 64, 128, 256});
    CHECK(epochs_of({5, 1000}) == std::vector<std::int64_t>{5, 5000});
    CHECK(Rungs{1, 3}.passed(26) == 3);
    CHECK(Rungs{4, 3}.passed(3) == 0);
    CHECK(Rungs{1, 3}.passed(std::numeric_limits<std::int64_t>::max()) == 8);
}

TEST_CASE("with several objectives, a training ends if it is neither in the first front nor among the best share") {
    Population population(ExchangeKind::none, 1, {{.quantity = Quantity::parameters}});
    RandomStream random(2, Purpose::test);
    std::vector<ObjectiveValues> seen;
    for (std::uint32_t number = 1; number <= 200; ++number) {
        Individual individual = bred(number);
        individual.parameters = static_cast<std::int64_t>(random.below(50));
        const double loss = std::floor(50 * random.uniform());
        const bool is_ended = ends(HalvingOptions{1, 2}, {loss}, population, individual);

        seen.push_back({individual.id, {loss, static_cast<double>(individual.parameters)}});
        CHECK(is_ended == !is_among_best(seen, 2, individual.id, std::max<std::size_t>(1, seen.size() / 2)));
        CHECK(individual.pruning->losses[0] == loss);
        CHECK(individual.pruning->costs[0][0] == static_cast<double>(individual.parameters));
        CHECK(std::isnan(individual.pruning->threshold));
        individual.outcome = is_ended ? Outcome::pruned : Outcome::unfinished;
        individual.loss = loss;
        population.merge(individual);
    }
}

TEST_CASE("with several objectives, the costs at a rung are compared, not the costs of later epochs") {
    const auto ends_beside = [](const MedianOptions& options) {
        Population population(ExchangeKind::none, 1, {{.quantity = Quantity::seconds}});
        for (std::uint32_t number = 1; number <= 8; ++number) {
            Individual other = at_rung(number, 1, 0.5);
            other.pruning.edit().costs[0][0] = 1;
            other.training_seconds = 100;
            population.merge(other);
        }
        Individual individual = bred(9);
        individual.training_seconds = 2;
        return ends(options, {0.6, 0.6}, population, individual);
    };

    CHECK(ends_beside({.first_epoch = 2, .factor = 2, .least = 5}));
    CHECK_FALSE(ends_beside({.first_epoch = 2, .factor = 2, .least = 9}));
}

TEST_CASE("halving: a training ends if at least 1 / factor of the losses at its rung are better") {
    RandomStream random(1, Purpose::test);
    for (const std::int64_t factor : {2, 3, 4}) {
        Population population(ExchangeKind::none, 1);
        std::vector<double> losses;
        for (std::uint32_t number = 1; number <= 200; ++number) {
            const double loss = std::floor(50 * random.uniform());  // with ties
            Individual individual = bred(number);
            const bool is_ended = ends(HalvingOptions{1, factor}, {loss}, population, individual);

            losses.push_back(loss);
            const auto better_ones =
                std::count_if(losses.begin(), losses.end(), [&](double one) { return one < loss; });
            CHECK(is_ended == (better_ones >= std::max<std::int64_t>(1, std::ssize(losses) / factor)));
            CHECK(individual.pruning->rung == 1);
            CHECK(individual.pruning->losses[0] == loss);
            CHECK(is_ended == (loss > individual.pruning->threshold));
            individual.outcome = is_ended ? Outcome::pruned : Outcome::unfinished;
            individual.loss = loss;
            population.merge(individual);
        }
    }
}

TEST_CASE("halving: compares only at rungs, with the least loss so far, and only with its own island") {
    Population population(ExchangeKind::none, 2);
    population.merge(at_rung(1, 2, 0.5));
    population.merge(at_rung(2, 2, 0.1, 1));
    population.merge(at_rung(3, 1, 0.2));
    const HalvingOptions halving;
    Individual individual = bred(9);

    individual.pruning.edit().rung = 1;
    CHECK_FALSE(ends(halving, {9, 9}, population, individual));
    CHECK(individual.pruning->rung == 1);
    CHECK_FALSE(ends(halving, {0.4, 9, 9}, population, individual));
    CHECK(individual.pruning->rung == 2);
    CHECK(individual.pruning->losses[1] == 0.4);
    CHECK_FALSE(ends(halving, {0.4, 9, 9, 9}, population, individual));

    Individual worse = bred(10);
    CHECK(ends(halving, {0.6, 0.7, 0.8}, population, worse));
    CHECK(worse.pruning->threshold == 0.5);
}

TEST_CASE("halving: a complete training counts at every rung, a diverged training only at rungs that it reached") {
    Population population(ExchangeKind::none, 1);
    population.merge(evaluated(1, 0.5));  // ended before epoch 9 because of its patience
    Individual diverged = at_rung(2, 1, 0.1);
    diverged.outcome = Outcome::diverged;
    population.merge(diverged);
    Individual individual = bred(9);
    const auto epochs = [](int count, double loss) {
        return std::vector<double>(static_cast<std::size_t>(count), loss);
    };

    CHECK(ends(HalvingOptions{}, epochs(9, 0.6), population, individual));
    individual.pruning = {};
    CHECK_FALSE(ends(HalvingOptions{}, epochs(9, 0.4), population, individual));
    individual.pruning = {};
    CHECK(ends(HalvingOptions{}, epochs(1, 0.4), population, individual));
    CHECK(individual.pruning->threshold == 0.1);
}

TEST_CASE("halving: a resumed training is not compared again at a rung that it passed before the restart") {
    Population population(ExchangeKind::none, 1);
    population.merge(at_rung(1, 1, 0.1));
    Individual individual = at_rung(9, 1, 0.7);
    const Individual before = individual;

    CHECK_FALSE(ends(HalvingOptions{}, {0.7}, population, individual));
    CHECK(identical(individual, before));
}

TEST_CASE("halving: a rung that was passed without a comparison is compared late, with the values up to its epoch") {
    Population population(ExchangeKind::none, 1);
    population.merge(at_rung(1, 2, 0.5));
    for (const double own : {0.4, 0.6}) {
        Individual individual = at_rung(9, 1, own);
        CHECK(ends(HalvingOptions{}, {9, 9, own, 0.1}, population, individual) == (own > 0.5));
        CHECK(individual.pruning->rung == 2);
        CHECK(individual.pruning->losses[1] == own);
    }
}

TEST_CASE("median: ends a training that is worse than the median of at least five others") {
    RandomStream random(2, Purpose::test);
    for (const std::uint32_t others : {1U, 4U, 5U, 6U, 31U}) {
        Population population(ExchangeKind::none, 1);
        std::vector<double> losses;
        for (std::uint32_t number = 1; number <= others; ++number) {
            losses.push_back(random.uniform());
            population.merge(at_rung(number, 1, losses.back()));
        }
        std::sort(losses.begin(), losses.end());
        const double median = (losses[(others - 1) / 2] + losses[others / 2]) / 2;

        for (const double loss : {median - 1e-9, median + 1e-9}) {
            Individual individual = bred(100);
            CHECK(ends(MedianOptions{}, {7, loss}, population, individual) == (others >= 5 && loss > median));
            CHECK(individual.pruning->losses[0] == loss);
            CHECK((others < 5 || individual.pruning->threshold == median));
        }
    }
}

TEST_CASE("optimistic_end: extrapolates a law without noise; a rising or constant curve keeps its best loss") {
    for (const double c : {0.3, 1.0, 2.5}) {
        const auto end = optimistic_end(power_law(0.2, 1.5, c, 8), 100);
        REQUIRE(end);
        CHECK(*end == doctest::Approx(0.2 + 1.5 * std::pow(100, -c)).epsilon(0.02));
    }
    CHECK_FALSE(optimistic_end(power_law(0.2, 1.5, 1, 3), 100));
    CHECK(*optimistic_end({{0.5, 0.5, 0.5, 0.5, 0.5}}, 100) == doctest::Approx(0.5));
    CHECK(*optimistic_end(power_law(2, -1.5, 1, 6), 100) == doctest::Approx(0.5));
}

TEST_CASE("optimistic_end: matches its definition") {
    RandomStream random(3, Purpose::test);
    struct Case {
        int epochs;
        double t_90, f_90;
    };
    // Tables of Student's t and of F with 1 degree of freedom, at 90 %.
    for (const auto& [epochs, t_90, f_90] :
         {Case{4, 3.07768, 39.8635}, Case{5, 1.88562, 8.52632}, Case{6, 1.63774, 5.53832}, Case{8, 1.47588, 4.06042},
          Case{13, 1.37218, 3.28502}, Case{33, 1.31042, 2.88069}}) {
        for (int repeat = 0; repeat < 20; ++repeat) {
            std::vector<double> values =
                power_law(random.uniform(), 1 + random.uniform(), 2 * random.uniform(), epochs);
            for (double& value : values) {
                value += 0.02 * random.normal();
            }
            CHECK(optimistic_end(values, 50).value() ==
                  doctest::Approx(reference_end(values, 50, t_90, f_90)).epsilon(1e-3));
        }
    }
}

TEST_CASE("optimistic_end: at least nine in ten noisy curves end above it") {
    RandomStream random(4, Purpose::test);
    int below = 0;
    constexpr int laws = 1000;
    for (int law = 0; law < laws; ++law) {
        const std::vector<double> whole =
            power_law(random.uniform(), 0.5 + random.uniform(), 0.3 + random.uniform(), 50);
        std::vector<double> values(whole.begin(), whole.begin() + 10);
        for (double& value : values) {
            value += 0.03 * random.normal();
        }
        below += whole.back() + 0.03 * random.normal() < optimistic_end(values, 50).value() ? 1 : 0;
    }
    CHECK(below < 0.1 * laws);
    CHECK(below > 0);
}

TEST_CASE("curve: ends a training if its optimistic end is worse than the median of at least five complete ones") {
    Population population(ExchangeKind::none, 1);
    const CurveOptions curve;
    Individual individual = bred(100);
    const auto bad = power_law(0.6, 1, 1, 6);
    for (std::uint32_t number = 1; number <= 4; ++number) {
        population.merge(evaluated(number, 0.1 * number));
        population.merge(pruned(50 + number, 1, 0.01));
    }
    CHECK_FALSE(ends(curve, bad, population, individual));  // only four are complete

    population.merge(evaluated(5, 0.5));

    CHECK(ends(curve, bad, population, individual));
    CHECK(individual.pruning->threshold == doctest::Approx(0.3));
    CHECK(individual.pruning->rung == 2);  // epoch 3 is rung 2
    CHECK_FALSE(ends(curve, power_law(0.2, 1, 1, 6), population, individual));
    CHECK_FALSE(ends(curve, {bad.begin(), bad.begin() + 4}, population, individual));
}

TEST_CASE("pruning: decisions depend on the known records, not on their order of arrival") {
    RandomStream random(5, Purpose::test);
    std::vector<Individual> records;
    for (std::uint32_t number = 1; number <= 60; ++number) {
        Individual individual = at_rung(number, 1, random.uniform());
        records.push_back(individual);
        individual.pruning.edit().rung = 2;
        individual.epochs = 3;
        individual.pruning.edit().losses[1] = individual.pruning->losses[0] * random.uniform();
        records.push_back(individual);
        individual.outcome = number % 3 == 0 ? Outcome::evaluated : Outcome::pruned;
        individual.loss = individual.pruning->losses[1];
        records.push_back(individual);
    }
    for (const PruningOptions& options :
         {PruningOptions{HalvingOptions{}}, PruningOptions{MedianOptions{1, 3, 5}}, PruningOptions{CurveOptions{}}}) {
        std::optional<double> threshold;
        for (int order = 0; order < 20; ++order) {
            Population population(ExchangeKind::none, 1);
            for (const std::uint32_t place : random.permutation(static_cast<std::uint32_t>(records.size()))) {
                population.merge(records[place]);
                population.merge(records[random.below(records.size())]);
            }
            Individual individual = bred(100);
            static_cast<void>(ends(options, power_law(0.2, 1, 1, 9), population, individual));
            CHECK(individual.pruning->threshold == threshold.value_or(individual.pruning->threshold));
            threshold = individual.pruning->threshold;
        }
        CHECK(std::isfinite(threshold.value()));
    }
}

TEST_CASE("genetic and evolution breed from higher rungs first, then from smaller losses") {
    Space space;
    space.genes = {{"x", RealGene{0, 1, Scale::linear}}, {"y", RealGene{0, 300, Scale::linear}}};
    RandomStream random(6, Purpose::test);
    std::vector<Individual> all;
    for (std::uint32_t number = 1; number <= 80; ++number) {
        const auto rung = static_cast<std::int32_t>(number % 4);
        all.push_back(rung == 0 ? evaluated(number, 1 + random.uniform()) : pruned(number, rung, random.uniform()));
        all.back().genome[0] = random.uniform();
        all.back().started = number;
        all.back().finished = 1e4 + number;
    }
    std::vector<Individual> in_order = all;
    std::sort(in_order.begin(), in_order.end(), [](const Individual& a, const Individual& b) { return better(a, b); });
    Population by_rung(ExchangeKind::none, 1);
    Population by_place(ExchangeKind::none, 1);
    for (std::size_t place = 0; place < in_order.size(); ++place) {
        by_rung.merge(in_order[place]);
        in_order[place].outcome = Outcome::evaluated;
        in_order[place].loss = static_cast<double>(place);
        by_place.merge(in_order[place]);
    }

    for (const PropagatorOptions& options :
         {PropagatorOptions{GeneticOptions{8}}, PropagatorOptions{EvolutionOptions{}}}) {
        const auto one = make_propagator(options, space, 1);
        const auto other = make_propagator(options, space, 1);
        // One worker and many evaluations: the additive model, which uses the losses themselves, hardly ever breeds.
        const Stage stage{.budget_used = 0.5, .evaluations = 9000, .births = 100};
        for (std::uint32_t birth = 0; birth < 20; ++birth) {
            RandomStream first(7, Purpose::breeding, birth);
            RandomStream second(7, Purpose::breeding, birth);
            CHECK(one->breed(by_rung, 0, stage, first).genome == other->breed(by_place, 0, stage, second).genome);
        }
    }
}

namespace {

const std::vector<double> not_finite{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                     -std::numeric_limits<double>::infinity()};

/// Returns `values` with `bad` as the first element, in the middle, as the last element, and as every element.
std::vector<std::vector<double>> spoilt(const std::vector<double>& values, double bad) {
    std::vector<std::vector<double>> all(4, values);
    all[0].front() = bad;
    all[1][values.size() / 2] = bad;
    all[2].back() = bad;
    all[3].assign(values.size(), bad);
    return all;
}

}  // namespace

TEST_CASE("losses have a total order, in which NaN and infinities of either sign are the worst") {
    std::vector<double> losses{0.5, -3, 1e308, -1e308, 0, 7};
    losses.insert(losses.end(), not_finite.begin(), not_finite.end());
    RandomStream random(3, Purpose::test);
    for (int round = 0; round < 200; ++round) {
        for (std::size_t left = losses.size(); left > 1; --left) {
            std::swap(losses[left - 1], losses[random.below(left)]);
        }
        CHECK(smallest_loss(losses) == -1e308);
        CHECK(loss_at_place(losses, 5) == 1e308);
        CHECK(std::isinf(loss_at_place(losses, 6)));
        CHECK(median_of(losses) == 7);
        CHECK(halving_threshold(losses, 3) == 0);
    }
    CHECK(median_of({1e308, 1e308}) == 1e308);
    CHECK(std::isinf(smallest_loss(not_finite)));
    for (const double bad : not_finite) {
        CHECK(is_better_loss(1e308, bad));
        CHECK_FALSE(is_better_loss(bad, 1e308));
        CHECK_FALSE(is_better_loss(bad, bad));
    }
}

TEST_CASE("a loss that is not finite protects no bad training from pruning, and does not end a good training") {
    Population population(ExchangeKind::none, 1);
    for (std::uint32_t number = 1; number <= 9; ++number) {
        Individual other = evaluated(number, 0.1 * number);
        other.epochs = 9;
        population.merge(other);
    }
    const std::vector<double> bad_losses{100, 100, 100, 100, 100, 100, 100, 100, 100};
    const std::vector<double> good_losses(9, 0.01);
    for (const PruningOptions& rule :
         std::vector<PruningOptions>{HalvingOptions{9, 3}, MedianOptions{9, 2, 5}, CurveOptions{5, 5}}) {
        CAPTURE(rule.index());
        for (const double bad : not_finite) {
            CAPTURE(bad);
            for (const auto& values : spoilt(bad_losses, bad)) {
                Individual individual = bred(100);
                CHECK(ends(rule, values, population, individual));
            }
            auto of_good = spoilt(good_losses, bad);
            of_good.pop_back();
            for (const auto& values : of_good) {
                Individual individual = bred(100);
                CHECK_FALSE(ends(rule, values, population, individual));
            }
        }
    }
}

TEST_CASE("individuals without a finite loss at a rung count as the worst at that rung") {
    for (const double bad : not_finite) {
        Population population(ExchangeKind::none, 1);
        for (std::uint32_t number = 1; number <= 5; ++number) {
            Individual other = bred(number);
            CHECK_FALSE(ends(MedianOptions{1, 2, 5}, {bad}, population, other));
            CHECK(std::isinf(other.pruning->losses[0]));
            population.merge(other);
        }
        population.merge(at_rung(6, 1, 0.5));
        population.merge(at_rung(7, 1, 0.6));
        Individual one = bred(8);

        CHECK_FALSE(ends(MedianOptions{1, 2, 5}, {0.7}, population, one));
        CHECK(std::isinf(one.pruning->threshold));
    }
}

TEST_CASE("optimistic_end: ignores losses that are not finite") {
    const double exponent = 0.05 * std::pow(80, 20 / 39.0);  // one of the exponents that optimistic_end() tries
    const std::vector<double> law = power_law(0.5, 2, exponent, 12);
    for (const double bad : not_finite) {
        auto some = spoilt(law, bad);
        some.pop_back();
        for (const auto& values : some) {
            CHECK(optimistic_end(values, 100).value() == doctest::Approx(optimistic_end(law, 100).value()));
        }
        CHECK(std::isinf(optimistic_end(std::vector(6, bad), 100).value()));
        CHECK_FALSE(optimistic_end(std::vector(3, bad), 100));
        CHECK_FALSE(optimistic_end(std::vector{bad, 3.0, 2.0, 1.0, bad}, 100));
    }
    CHECK_FALSE(optimistic_end(std::vector{1e200, 9e199, 8e199, 7e199, 6e199}, 100));
}
