#include "search/propagators/gaussian_process.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

using namespace finch;
using namespace finch::search;

namespace {

Space two_reals_and_a_choice() {
    return {{{"a", RealGene{0, 1}}, {"b", RealGene{0, 1}}, {"c", ChoiceGene{{"x", "y", "z"}}}}};
}

/// The Matérn 5/2 kernel of two points, written out.
double kernel(const Eigen::VectorXd& p, const Eigen::VectorXd& q, const Eigen::VectorXd& lengths) {
    const double a = (p[0] - q[0]) / lengths[0];
    const double b = (p[1] - q[1]) / lengths[1];
    const double c = (p[2] == q[2] ? 0 : 1) / lengths[2];
    const double r = std::sqrt(5.0) * std::sqrt(a * a + b * b + c * c);
    return (1 + r + r * r / 3) * std::exp(-r);
}

Eigen::MatrixXd random_points(Eigen::Index count, std::uint64_t seed) {
    RandomStream random(seed, Purpose::test);
    Eigen::MatrixXd points(3, count);
    for (Eigen::Index i = 0; i < count; ++i) {
        points.col(i) << random.uniform(), random.uniform(), (static_cast<double>(random.below(3)) + 0.5) / 3;
    }
    return points;
}

}  // namespace

TEST_CASE("mean and deviation are those of the formulas with an inverse") {
    GaussianProcess process(two_reals_and_a_choice());
    const Eigen::MatrixXd known = random_points(12, 1);
    const Eigen::MatrixXd asked = random_points(5, 2);
    Eigen::VectorXd values(12);
    for (Eigen::Index i = 0; i < 12; ++i) {
        values[i] = std::sin(5 * known(0, i)) + known(2, i);
    }
    RandomStream random(1, Purpose::test);
    process.fit(known, values, 30, random);
    process.condition(known, values);
    const auto found = process.predict(asked);

    const Eigen::VectorXd lengths = process.length_scales();
    Eigen::MatrixXd covariance(12, 12);
    for (Eigen::Index i = 0; i < 12; ++i) {
        for (Eigen::Index j = 0; j < 12; ++j) {
            covariance(i, j) = kernel(known.col(i), known.col(j), lengths) + (i == j ? process.noise() + 1e-6 : 0);
        }
    }
    const Eigen::MatrixXd inverse = covariance.inverse();
    for (Eigen::Index i = 0; i < 5; ++i) {
        Eigen::VectorXd k(12);
        for (Eigen::Index j = 0; j < 12; ++j) {
            k[j] = kernel(asked.col(i), known.col(j), lengths);
        }
        CHECK(found.mean[i] == doctest::Approx(k.dot(inverse * values)).epsilon(1e-8));
        CHECK(found.deviation[i] == doctest::Approx(std::sqrt(1 - k.dot(inverse * k))).epsilon(1e-6));
    }
}

TEST_CASE("a gene that does nothing gets a longer scale than one that does") {
    GaussianProcess process(two_reals_and_a_choice());
    const Eigen::MatrixXd known = random_points(80, 3);
    const Eigen::VectorXd values = (6 * known.row(0).array()).sin();
    RandomStream random(2, Purpose::test);
    process.fit(known, values, 200, random);

    const Eigen::VectorXd lengths = process.length_scales();
    CHECK(lengths[1] > 2 * lengths[0]);
    CHECK(lengths[2] > 2 * lengths[0]);
    CHECK(process.noise() < 0.05);
}

TEST_CASE("noise is told from signal: it is large where equal points have different values") {
    GaussianProcess process(two_reals_and_a_choice());
    const Eigen::MatrixXd known = random_points(80, 3);
    RandomStream random(3, Purpose::test);
    Eigen::VectorXd values(80);
    for (double& value : values) {
        value = random.normal();
    }
    process.fit(known, values, 200, random);

    CHECK(process.noise() > 0.3);
}
