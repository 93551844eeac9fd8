// CMA-ES as a propagator: its restarts, its margin for discrete genes, and its results on test functions.
#include "search/propagators/cma_search.hpp"

#include "finch/search/function.hpp"

#include "search/propagators/normal.hpp"
#include "simulated_search.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <set>

using namespace finch;
using namespace finch::search;

namespace {

double ellipsoid(const Genome& x) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        sum += std::pow(10, 6.0 * static_cast<double>(i) / static_cast<double>(x.size() - 1)) * x[i] * x[i];
    }
    return sum;
}

double rastrigin(const Genome& x) {
    double sum = 0;
    for (const double value : x) {
        sum += 10 + value * value - 10 * std::cos(6.283185307179586 * value);
    }
    return sum;
}

}  // namespace

TEST_CASE("cmaes reaches 1e-3 on a rotated 20-gene ellipsoid of condition 1e6 with 152 individuals in flight") {
    const Function plain{"ellipsoid", 20, 1, {-5, 5}, {0}, "Hansen and Ostermeier 2001", [](std::span<const double> x) {
                             double value = 0;
                             for (std::size_t i = 0; i < x.size(); ++i) {
                                 value += std::pow(1e6, static_cast<double>(i) / 19) * x[i] * x[i];
                             }
                             return value;
                         }};
    const FunctionInstance function(plain, 20, {.shift = true, .rotate = true, .instance = 3});
    const Found found = search_for(
        CmaEsOptions{}, function_space(function.function(), 20),
        [&](const Genome& genome) { return function.value(genome); }, 38'912, 152, 1);
    CHECK(found.best < 1e-3);
}

// The expected number of the Python package comes from tools/fixtures/cmaes_evaluations.py.
TEST_CASE("cmaes with one individual in flight needs at most 10 % more evaluations than the package cmaes") {
    const double median = median_over_seeds(11, [](std::uint64_t seed) {
        return evaluations_to(search_for(CmaEsOptions{}, reals(10), ellipsoid, 6000, 1, seed), 1e-8);
    });
    CHECK(median < 1.1 * 4211);
    CHECK(median > 0.8 * 4211);
}

TEST_CASE("cmaes depends on the order of the losses only, also across restarts") {
    const auto bred = [](const std::function<double(double)>& transform) {
        return search_for(
                   CmaEsOptions{.population = 6}, reals(3),
                   [&](const Genome& genome) { return transform(rastrigin(genome)); }, 6000, 4, 2)
            .all;
    };
    const std::vector<Individual> plain = bred([](double loss) { return loss; });
    CHECK(plain.back().breeding.slot >= 3);  // at least three restarts
    for (const auto& transform :
         {+[](double loss) { return 1024 * loss; }, +[](double loss) { return loss * loss * loss; }}) {
        const std::vector<Individual> other = bred(transform);
        const auto different = std::mismatch(plain.begin(), plain.end(), other.begin(),
                                             [](const auto& a, const auto& b) { return a.genome == b.genome; });
        CHECK(different.first - plain.begin() == std::ssize(plain));
    }
}

TEST_CASE("CMA-ES: rotating and shifting all samples rotates and shifts the mean and the covariance") {
    constexpr Eigen::Index genes = 6;
    RandomStream random(3, Purpose::test);
    Eigen::MatrixXd normals(genes, genes);
    for (double& value : normals.reshaped()) {
        value = random.normal();
    }
    const Eigen::MatrixXd turn = Eigen::HouseholderQR<Eigen::MatrixXd>(normals).householderQ();
    const Eigen::VectorXd middle = Eigen::VectorXd::Constant(genes, 0.5);
    const Eigen::VectorXd moved = Eigen::VectorXd::LinSpaced(genes, 0.4, 0.6);
    CmaEs plain(UnitGenome(genes, 0.5), 0.02);
    CmaEs turned(UnitGenome(moved.begin(), moved.end()), 0.02);
    for (int i = 0; i < 600; ++i) {
        const UnitGenome sample = plain.sample(random);
        const Eigen::VectorXd step = Eigen::Map<const Eigen::VectorXd>(sample.data(), genes) - middle;
        const Eigen::VectorXd image = moved + turn * step;
        const Eigen::ArrayXd scales = Eigen::ArrayXd::LinSpaced(genes, 0, 4);
        const double loss = (Eigen::pow(10, scales) * (step.array() - 0.03).square()).sum();
        plain.take(sample, loss);
        turned.take(UnitGenome(image.begin(), image.end()), loss);
    }
    CHECK((turned.mean() - moved - turn * (plain.mean() - middle)).norm() < 1e-9);
    CHECK((turned.covariance() - turn * plain.covariance() * turn.transpose()).norm() <
          1e-6 * plain.covariance().norm());
    CHECK(turned.sigma() == doctest::Approx(plain.sigma()));
}

TEST_CASE("restarts: ipop doubles the samples per start, bipop adds small starts, `none` makes a single start") {
    const auto starts = [](Restarts restarts) {
        CmaState state({.space = reals(2), .seed = 1, .options = {.population = 8, .restarts = restarts}});
        std::vector<int> samples{state.distribution().samples()};
        for (std::uint32_t i = 1; i <= 20'000; ++i) {
            RandomStream random(1, Purpose::breeding, i);
            Individual individual;
            individual.id = Id::make(0, 0, i);
            const Offspring offspring = state.breed({}, random);
            individual.genome = offspring.genome;
            individual.bred_by = offspring.bred_by;
            individual.breeding = offspring.breeding;
            individual.outcome = Outcome::evaluated;
            individual.loss = rastrigin(individual.genome);
            const std::int32_t before = state.starts();
            state.take(individual, true);
            if (state.starts() != before) {
                samples.push_back(state.distribution().samples());
            }
        }
        return samples;
    };
    CHECK(starts(Restarts::none) == std::vector{8});
    const std::vector<int> ipop = starts(Restarts::ipop);
    REQUIRE(ipop.size() > 3);
    for (std::size_t i = 1; i < ipop.size(); ++i) {
        CHECK(ipop[i] == 2 * ipop[i - 1]);
    }
    const std::vector<int> bipop = starts(Restarts::bipop);
    REQUIRE(bipop.size() > 5);
    int largest = 8;
    int small = 0;
    for (std::size_t i = 1; i < bipop.size(); ++i) {
        small += bipop[i] < largest ? 1 : 0;
        CHECK((bipop[i] == 2 * largest || (bipop[i] >= 8 && 2 * bipop[i] <= largest)));
        largest = std::max(largest, bipop[i]);
    }
    CHECK(small > 2);
}

TEST_CASE("cmaes: a result bred by an earlier start does not update the next start") {
    CmaState state({.space = reals(2), .seed = 1, .options = {.population = 8, .restarts = Restarts::ipop}});
    std::uint32_t number = 0;
    const auto result = [&](Offspring offspring, double loss) {
        Individual individual;
        individual.id = Id::make(0, 0, ++number);
        individual.genome = std::move(offspring.genome);
        individual.bred_by = offspring.bred_by;
        individual.breeding = offspring.breeding;
        individual.outcome = Outcome::evaluated;
        individual.loss = loss;
        return individual;
    };
    RandomStream random(1, Purpose::breeding);
    const Offspring late = state.breed({}, random);
    while (state.starts() == 1) {
        Offspring offspring = state.breed({}, random);
        const double loss = sphere(offspring.genome);
        state.take(result(std::move(offspring), loss), true);
    }
    CHECK(state.distribution().is_between_generations());

    state.take(result(late, -1), true);
    CHECK(state.distribution().is_between_generations());
    CHECK(state.distribution().best_loss() > 0);

    Offspring elsewhere = late;  // an immigrant updates the distribution
    state.take(result(std::move(elsewhere), -1), false);
    CHECK(state.distribution().best_loss() == -1);
}

TEST_CASE("bipop: a small start has lambda (lambda_large / 2 lambda)^(U^2) samples (Hansen 2009)") {
    CHECK(samples_of_small_start(64, 5, 0) == 64);
    CHECK(samples_of_small_start(64, 5, 0.5) == 128);
    CHECK(samples_of_small_start(64, 5, 1) == 1024);
}

TEST_CASE("keep_margin: a sample differs from the mean's discrete value with a probability of at least alpha") {
    constexpr double alpha = 0.02;
    const std::vector<double> thresholds{0.25, 0.5, 0.75};
    for (const double deviation : {1e-6, 0.01, 0.1, 0.4}) {
        for (double mean = 0.01; mean < 1; mean += 0.0625) {
            CAPTURE(deviation);
            CAPTURE(mean);
            const Cell cell = cell_at(thresholds, mean);
            double moved = mean;
            double extent = 1;
            keep_margin(thresholds, deviation, alpha, moved, extent);

            const double spread = extent * deviation;
            const double below = normal_share((cell.low - moved) / spread);
            const double above = normal_share((moved - cell.high) / spread);
            const bool has_two_ways = std::isfinite(cell.low) && std::isfinite(cell.high);
            CHECK(below + above >= alpha * (1 - 1e-6));
            CHECK((!has_two_ways || std::min(below, above) >= alpha / 2 * (1 - 1e-6)));
            const double before = normal_share((cell.low - mean) / deviation);
            const double after = normal_share((mean - cell.high) / deviation);
            if (has_two_ways && std::min(before, after) >= alpha / 2) {
                CHECK((moved == mean && extent == 1));
            }
        }
    }
}

// Smaller versions of the functions in section 5 of the paper on CMA-ES with margin. Without a margin, the whole
// numbers stop far from the optimum, because their deviation shrinks with the deviation of the real genes.
TEST_CASE("cmaes finds the optimum of real and whole-number genes together") {
    Space space = reals(5);
    for (int i = 0; i < 5; ++i) {
        space.genes.push_back({"k" + std::to_string(i), IntGene{-10, 10}});
    }
    space.genes.push_back({"flag", IntGene{0, 1}});
    space.genes.push_back({"width", IntGene{1, 1000, Scale::log}});
    const auto loss = [](const Genome& x) {
        double sum = 0;
        for (std::size_t i = 0; i < 10; ++i) {
            sum += std::pow(10, 3.0 * static_cast<double>(i % 5) / 4) * std::pow(x[i] - (i < 5 ? 1.25 : 7), 2);
        }
        return sum + 1 - x[10] + std::pow(std::log(x[11] / 300), 2);
    };
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        CAPTURE(seed);
        const Found found = search_for(CmaEsOptions{.restarts = Restarts::none}, space, loss, 12'000, 8, seed);
        CHECK(found.best < 1e-8);
    }
}

TEST_CASE("cmaes comes close to the optimum of whole-number genes that depend on each other") {
    Space space;
    for (int i = 0; i < 6; ++i) {
        space.genes.push_back({"k" + std::to_string(i), IntGene{-200, 200}});
    }
    const auto loss = [](const Genome& x) {
        double sum = 0;
        for (std::size_t i = 0; i + 1 < x.size(); ++i) {
            sum += 100 * std::pow(x[i + 1] - x[i] - 10, 2) + std::abs(x[i] + 90);
        }
        return sum;
    };
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        CHECK(search_for(CmaEsOptions{}, space, loss, 20'000, 4, seed).best <= 150);  // -90, -80, … has loss 100
    }
}

TEST_CASE("cmaes finds the optimum with choices, conditional genes and a fixed gene") {
    Space space = reals(4);
    space.genes.push_back({"optimizer", ChoiceGene{{"sgd", "adam", "rmsprop", "adadelta"}}});
    space.genes.push_back({"activation", ChoiceGene{{"relu", "tanh"}}});
    space.genes.push_back({"momentum", RealGene{0, 1}, {{4, {0}}}});
    space.genes.push_back({"nothing", IntGene{3, 3}});
    const auto loss = [](const Genome& x) {
        const double momentum = x[4] == 0 ? std::pow(x[6] - 0.9, 2) : 0.5;
        return momentum + 0.3 * (x[4] == 0 ? 0 : 4 - x[4]) + x[5] + ellipsoid({x[0], x[1], x[2], x[3]});
    };
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        CAPTURE(seed);
        const Found found = search_for(CmaEsOptions{}, space, loss, 6000, 8, seed);
        CHECK(found.best < 1e-8);
        for (const Individual& individual : found.all) {
            CHECK(individual.genome == canonical(space, individual.genome));
        }
    }
}

TEST_CASE("cmaes works with choices only, with one gene, and with fixed genes only") {
    const Space choices{{{"a", ChoiceGene{{"x", "y", "z"}}}, {"b", ChoiceGene{{"x", "y", "z", "u", "v"}}}}};
    const auto other = [](const Genome& x) { return std::abs(x[0] - 1) + std::abs(x[1] - 3); };
    CHECK(search_for(CmaEsOptions{}, choices, other, 200, 2, 1).best == 0);
    CHECK(search_for(
              CmaEsOptions{}, reals(1), [](const Genome& x) { return std::pow(x[0] - 2, 2); }, 400, 2, 1)
              .best < 1e-9);
    const Space still{{{"a", IntGene{2, 2}}}};
    CHECK(search_for(
              CmaEsOptions{}, still, [](const Genome&) { return 1.0; }, 20, 2, 1)
              .all.size() == 20);
}

TEST_CASE("cmaes finds an optimum in a corner, and its samples do not accumulate at the bounds") {
    const Found found = search_for(
        CmaEsOptions{.restarts = Restarts::none}, reals(4, 0, 1),
        [](const Genome& x) { return x[0] + x[1] - x[2] - x[3]; }, 3000, 8, 1);
    CHECK(found.best < -2 + 1e-4);
    std::set<double> distinct;
    for (std::size_t i = 0; i < 400; ++i) {  // later samples are exactly at the bounds
        for (const double value : found.all[i].genome) {
            CHECK((value > 0 && value < 1));
            distinct.insert(value);
        }
    }
    CHECK(distinct.size() == 1600);
}

TEST_CASE("coordinates: bounded() is the inverse of unbounded() and mirrors at the bounds") {
    for (double u = 0; u <= 1; u += 1.0 / 512) {
        const double x = unbounded(u);
        CHECK(bounded(x) == doctest::Approx(u));
        CHECK(bounded(-2 * bend - x) == doctest::Approx(u));
        CHECK(bounded(2 + 2 * bend - x) == doctest::Approx(u));
        CHECK((x >= -bend && x <= 1 + bend));
    }
    CHECK(bounded(0.3) == doctest::Approx(0.3));
}

TEST_CASE("cmaes starts its mean at the best guess") {
    const Space space = reals(8);
    CmaState state({.space = space, .seed = 1});
    Individual guess;
    guess.id = Id::make(0, 0, 1);
    guess.bred_by = Operator::given;
    guess.outcome = Outcome::evaluated;
    guess.genome = Genome(8, 3);
    guess.loss = 1;
    state.take(guess, true);
    Individual worse = guess;
    worse.id = Id::make(0, 0, 2);
    worse.genome = Genome(8, -3);
    worse.loss = 2;
    state.take(worse, true);

    CHECK((state.distribution().mean().array() - 0.8).abs().maxCoeff() < 1e-12);
}

TEST_CASE("cmaes: the births 2k and 2k + 1 are opposite points, unless their first genome was ruled out") {
    CmaState state({.space = reals(3), .seed = 1, .options = {.sigma = 0.01}});
    Individual first;  // the start begins here, far from the bounds, where points are bent
    first.id = Id::make(0, 0, 1);
    first.genome = {0.5, 0, -0.5};
    first.bred_by = Operator::given;
    first.outcome = Outcome::evaluated;
    first.loss = 1;
    state.take(first, true);
    const Eigen::VectorXd mean = state.distribution().mean();
    const auto step = [&](std::uint64_t births, std::uint32_t attempt) {
        RandomStream random(1, Purpose::breeding, births, attempt);
        const Offspring offspring = state.breed({.births = births, .attempt = attempt}, random);
        const UnitGenome point = to_unit(reals(3), offspring.genome);
        return Eigen::VectorXd(Eigen::Map<const Eigen::VectorXd>(point.data(), 3) - mean);
    };
    CHECK((step(6, 0) + step(7, 0)).norm() < 1e-9);
    CHECK((step(6, 0) - step(8, 0)).norm() > 1e-4);
    CHECK((step(6, 1) + step(7, 1)).norm() > 1e-4);
}
