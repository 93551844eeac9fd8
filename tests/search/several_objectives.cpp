// Breeding for several objectives: the combination of objectives, and fronts of short searches.
#include "finch/search/objectives.hpp"

#include "search/propagators/local_model.hpp"
#include "search/propagators/objective_models.hpp"
#include "simulated_search.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::search;

namespace {

/// A search for the front between (0, …) and (1, …). One option of the choice is worse in both objectives.
struct Front {
    /// `cost`: none for a search with one objective.
    explicit Front(const PropagatorOptions& options, std::uint64_t seed, std::optional<Cost> cost = Cost{})
        : options_(options),
          seed_(seed),
          propagator_(make_propagator(options, space(), seed)),
          population_(ExchangeKind::none, 1, cost ? std::vector{*cost} : std::vector<Cost>{}) {}

    static Space space() {
        Space space = reals(3, 0, 1);
        space.genes.push_back({"kind", ChoiceGene{{"a", "b"}}});
        space.genes.push_back({"size", IntGene{1, 8}});
        return space;
    }
    static double objective(const Genome& x, double optimum) {
        return std::pow(x[0] - optimum, 2) + std::pow(x[1] - 0.3, 2) + std::pow(x[2] - 0.6, 2) + 0.5 * x[3] +
               0.02 * std::pow(x[4] - 6, 2);
    }

    static void evaluate(Individual& one) {
        one.loss = objective(one.genome, 0);
        one.parameters = std::llround(1e6 * objective(one.genome, 1));
    }
    /// `measure` sets the results, and may set an outcome.
    void run(std::int64_t evaluations, const std::function<void(Individual&)>& measure = evaluate) {
        for (std::int64_t i = 0; i < evaluations; ++i) {
            Individual one = bred(*propagator_);
            one.outcome = Outcome::evaluated;
            measure(one);
            one.finished = static_cast<double>(i + 1);
            population_.merge(one);
        }
    }
    [[nodiscard]] const Population& population() const { return population_; }
    [[nodiscard]] Individual bred(Propagator& propagator) const {
        const auto number = static_cast<std::uint32_t>(population_.size() + 1);
        Individual one;
        one.id = Id::make(0, 0, number);
        RandomStream random(seed_, Purpose::breeding, number);
        one.genome = propagator.breed(population_, 0, {.workers = 4, .births = number - 1}, random).genome;
        return one;
    }
    /// Returns the share of the largest possible volume that is missing.
    [[nodiscard]] double gap() const {
        const std::array reference{1.0, 1e6};
        const double whole = 1e6 * (1 - 1.0 / 6);  // above the curve (t², (1 − t)²)
        std::vector<ObjectiveValues> points;
        for (const auto& [id, one] : population_.individuals()) {
            if (one.is_complete()) {
                points.push_back({id, {one.loss, static_cast<double>(one.parameters)}});
            }
        }
        return 1 - hypervolume(std::move(points), reference) / whole;
    }
    /// Returns whether a new propagator breeds the same next genome.
    [[nodiscard]] bool is_resumed_exactly() const {
        const auto other = make_propagator(options_, space(), seed_);
        return bred(*other).genome == bred(*propagator_).genome;
    }

private:
    PropagatorOptions options_;
    std::uint64_t seed_;
    std::unique_ptr<Propagator> propagator_;
    Population population_;
};

double median_gap(const PropagatorOptions& options, std::int64_t evaluations) {
    std::vector<double> gaps;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Front front(options, seed);
        front.run(evaluations);
        CHECK(front.is_resumed_exactly());
        gaps.push_back(front.gap());
    }
    std::sort(gaps.begin(), gaps.end());
    return gaps[2];
}

}  // namespace

TEST_CASE("several objectives: a point on the direction's ray has the same value in each objective") {
    Eigen::MatrixXd values(2, 4);
    values << 0, 1, 2, 2,  //
        10, 5, 0, 20;      // the last point is dominated
    Eigen::VectorXd direction(2);
    direction << 0.6, 0.8;
    const Scalarisation combined = along(direction, values);
    CHECK(combined.reference[0] == doctest::Approx(2.2));
    CHECK(combined.reference[1] == doctest::Approx(11));
    const Eigen::VectorXd on_ray = combined.reference - 0.5 * combined.scale;
    CHECK(combined.of(on_ray) == doctest::Approx(-0.5));
    Eigen::VectorXd worse = on_ray;
    worse[1] += 1;
    CHECK(combined.decisive(worse) == 1);
    CHECK(combined.of(worse) > combined.of(on_ray));

    values.row(0).setConstant(4);
    for (const double value : {4.0, 1e9}) {  // an objective in which all agree does not matter
        worse << value, 6;
        CHECK(along(direction, values).decisive(worse) == 1);
        CHECK(along(direction, values).of(worse) == doctest::Approx((6 - 2) / (20 * 0.8)));
    }
    values.setConstant(4);
    worse << 4, 4;
    CHECK(std::isfinite(along(direction, values).of(worse)));

    const Eigen::VectorXd mean = Eigen::VectorXd::Constant(2, 3);
    const Eigen::VectorXd deviation = Eigen::VectorXd::Constant(2, 7);
    CHECK(combined.standardised(mean, deviation).of((worse - mean) / 7) == doctest::Approx(combined.of(worse)));
}

TEST_CASE("several objectives: one objective is its own combination") {
    const Eigen::VectorXd one = Eigen::VectorXd::Constant(1, 4.25);
    CHECK(along(Eigen::VectorXd::Ones(1), Eigen::MatrixXd::Random(1, 5)).of(one) == 4.25);
}

TEST_CASE("several objectives: the mean of combined values over directions is the hypervolume") {
    // Each direction's best value, to the power of the number of objectives, averages to the volume (Zhang and
    // Golovin).
    Eigen::MatrixXd front(2, 3);
    front << 0, 0.2, 1,  //
        1, 0.4, 0;
    RandomStream random(1, Purpose::breeding, 1);
    double sum = 0;
    constexpr int draws = 40'000;
    for (int i = 0; i < draws; ++i) {
        Eigen::VectorXd direction(2);
        direction << std::abs(random.normal()), std::abs(random.normal());
        direction.normalize();
        const Scalarisation combined = along(direction, front);
        const double best = std::min({combined.of(front.col(0)), combined.of(front.col(1)), combined.of(front.col(2))});
        sum += std::pow(-best, 2);
    }
    std::vector<ObjectiveValues> points;
    for (Eigen::Index i = 0; i < 3; ++i) {
        points.push_back({Id{}, {front(0, i), front(1, i)}});
    }
    const std::array reference{1.1, 1.1};
    const double volume = hypervolume(points, reference);
    CHECK(3.14159265 / 4 * sum / draws == doctest::Approx(volume).epsilon(0.02));
}

TEST_CASE("several objectives: models and evolution find a better front than random search, and resume exactly") {
    const double random = median_gap(RandomSearchOptions{}, 60);
    CHECK(median_gap(ScreenedOptions{}, 60) < 0.3 * random);
    CHECK(median_gap(AutomaticOptions{}, 60) < random);
    CHECK(median_gap(EvolutionOptions{}, 400) < 0.6 * median_gap(RandomSearchOptions{}, 400));
}

TEST_CASE("several objectives: the gradient of the combined lower bound equals finite differences") {
    RandomStream random(4, Purpose::test);
    Eigen::MatrixXd points(3, 20);
    Eigen::MatrixXd values(2, 20);
    for (Eigen::Index i = 0; i < points.cols(); ++i) {
        points.col(i) << random.uniform(), random.uniform(), random.uniform();
        values.col(i) << points.col(i).squaredNorm(), std::cos(3 * points(0, i)) - points(1, i);
    }
    const GaussianScales usual{.length = 1, .signal = 1, .linear = 0.1, .quadratic = 0.1, .noise = 1e-3};
    const GaussianScales wide{.length = 1, .signal = 1, .linear = 1, .quadratic = 1, .noise = 1};
    ObjectiveModels models(Eigen::VectorXd::Ones(3), {usual, wide, usual, 1e-6}, 2);
    models.fit(points, values);
    std::array<int, 2> decided{};
    for (int i = 0; i < 20; ++i) {
        Eigen::VectorXd direction(2);
        direction << 0.1 + random.uniform(), 0.1 + random.uniform();
        const Scalarisation combined = along(direction, values);
        models.condition(points, values, combined);
        Eigen::VectorXd point(3);
        point << random.uniform(), random.uniform(), random.uniform();
        Eigen::VectorXd gradient(3);
        const double bound = models.lower_bound(point, 0.7, gradient);
        CHECK(bound == doctest::Approx(models.lower_bounds(point, 0.7)[0]));
        for (Eigen::Index row = 0; row < 3; ++row) {
            constexpr double step = 1e-5;
            Eigen::MatrixXd sides = point.replicate(1, 2);
            sides(row, 0) -= step;
            sides(row, 1) += step;
            const Eigen::VectorXd bounds = models.lower_bounds(sides, 0.7);
            CHECK(gradient[row] == doctest::Approx((bounds[1] - bounds[0]) / (2 * step)).epsilon(1e-4));
        }
        Eigen::VectorXd by_objective(2);
        for (Eigen::Index row = 0; row < 2; ++row) {
            Scalarisation only = combined;
            only.reference[1 - row] = std::numeric_limits<double>::infinity();
            models.condition(points, values, only);
            by_objective[row] = models.lower_bounds(point, 0.7)[0];
        }
        ++decided.at(by_objective[0] > by_objective[1] ? 0 : 1);
    }
    CHECK(decided[0] > 0);
    CHECK(decided[1] > 0);
}

TEST_CASE("several objectives: an objective in which all results agree does not hinder the other") {
    const auto median_best = [](const std::optional<Cost>& cost, const std::function<void(Individual&)>& measure) {
        return median_over_seeds(5, [&](std::uint64_t seed) {
            Front front(ScreenedOptions{}, seed, cost);
            front.run(60, measure);
            return front.population().best()->loss;
        });
    };
    const auto constant_cost = [](Individual& one) {
        one.loss = Front::objective(one.genome, 0);
        one.parameters = 1000;
    };
    const auto constant_loss = [](Individual& one) {
        one.loss = 3;
        one.parameters = std::llround(1e6 * Front::objective(one.genome, 0));
    };
    const double alone = median_best(std::nullopt, constant_cost);
    CHECK(median_best(Cost{}, constant_cost) < 1.5 * alone);

    const double smallest = median_over_seeds(5, [&](std::uint64_t seed) {
        Front front(ScreenedOptions{}, seed);
        front.run(60, constant_loss);
        std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
        for (const auto& [id, one] : front.population().individuals()) {
            fewest = std::min(fewest, one.parameters);
        }
        return 1e-6 * static_cast<double>(fewest);
    });
    CHECK(smallest < 1.5 * alone);
}

TEST_CASE("several objectives: failures and broken limits do not attract births by their small costs") {
    // A quarter of the space fails with no parameters, or breaks a limit.
    const auto bad = [](const Individual& one) { return one.genome[0] > 0.5 && one.genome[1] > 0.5; };
    const auto births = [&](const std::optional<Cost>& cost, bool fails) {
        int count = 0;
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
            Front front(ScreenedOptions{}, seed, cost);
            front.run(60, [&](Individual& one) {
                Front::evaluate(one);
                if (bad(one)) {
                    ++count;
                    one.parameters = 0;
                    one.violation = fails ? 0 : 0.5;
                    one.outcome = fails ? Outcome::failed : Outcome::evaluated;
                    one.loss = fails ? Individual::not_measured : one.loss;
                }
            });
        }
        return count;
    };
    for (const bool fails : {true, false}) {
        CAPTURE(fails);
        CHECK(births(Cost{}, fails) < 1.5 * births(std::nullopt, fails));
    }
}

TEST_CASE("several objectives: the local model varies the genes of the first result, however large its costs are") {
    const Space space{{{"kind", ChoiceGene{{"a", "b"}}},
                       {"x", RealGene{0, 1}, {{0, {0}}}},
                       {"y", RealGene{0, 1}, {{0, {1}}}},
                       {"z", RealGene{0, 1}}}};
    std::vector<Seen> all;
    RandomStream random(5, Purpose::test);
    for (std::uint32_t number = 1; number <= 30; ++number) {
        const Genome genome =
            canonical(space, {number == 1 ? 1.0 : 0.0, random.uniform(), random.uniform(), random.uniform()});
        Eigen::VectorXd values(2);
        values << number, number == 1 ? 1e9 : number;
        all.push_back({to_unit(space, genome), values[0], values, top_rung, Id::make(0, 0, number)});
    }
    std::vector<const Seen*> results;
    std::transform(all.begin(), all.end(), std::back_inserter(results), [](const Seen& one) { return &one; });
    Scalarisation combined;
    combined.reference = Eigen::VectorXd::Zero(2);
    combined.scale = Eigen::VectorXd::Ones(2);
    LocalModel model(space, 1);
    model.fit(results, results);
    const std::set<Genome> known;
    for (int i = 0; i < 10; ++i) {
        const auto proposal = model.propose(results, combined, {}, {space, known, {}, {}}, random);
        REQUIRE(proposal);
        CHECK(proposal->genome[0] == 1);
    }
}
