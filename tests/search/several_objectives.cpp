// Breeding for several objectives: the combination of objectives, and fronts of short searches.
#include "finch/search/objectives.hpp"

#include "search/propagators/objective_models.hpp"
#include "simulated_search.hpp"

#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <vector>

using namespace finch;
using namespace finch::search;

namespace {

/// A search for the front between (0, …) and (1, …). One option of the choice is worse in both objectives.
struct Front {
    explicit Front(const PropagatorOptions& options, std::uint64_t seed)
        : options_(options), seed_(seed), propagator_(make_propagator(options, space(), seed)) {}

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

    void run(std::int64_t evaluations) {
        for (std::int64_t i = 0; i < evaluations; ++i) {
            Individual one = bred(*propagator_);
            one.loss = objective(one.genome, 0);
            one.parameters = std::llround(1e6 * objective(one.genome, 1));
            one.outcome = Outcome::evaluated;
            one.finished = static_cast<double>(i + 1);
            population_.merge(one);
        }
    }
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
        return 1 - hypervolume_of(population_, reference) / whole;
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
    Population population_{ExchangeKind::none, 1, {Cost{}}};
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
