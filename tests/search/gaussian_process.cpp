#include "search/propagators/gaussian_process.hpp"

#include "finch/base/random.hpp"

#include "search/propagators/minimize.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <vector>

using namespace finch;
using namespace finch::search;

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Returns a process over two numbers and a choice.
GaussianProcess process_of_three(bool has_quadratic) {
    const double v = has_quadratic ? 0.3 : 1e-300;
    const GaussianScales median{.length = 0.7, .signal = 1, .linear = v, .quadratic = v, .noise = 0.01};
    const GaussianScales deviation{.length = 1, .signal = 1, .linear = 2, .quadratic = 2, .noise = 2};
    return {VectorXd(Eigen::Vector3d(1, 1, 0)), {median, deviation, median, 1e-6}};
}

/// Computes the covariance of two points from its formula. `scales` has the order of log_scales().
double covariance(const VectorXd& p, const VectorXd& q, const VectorXd& scales) {
    const double a = (p[0] - q[0]) / std::exp(scales[0]);
    const double b = (p[1] - q[1]) / std::exp(scales[1]);
    const double c = (p[2] == q[2] ? 0 : 1) / std::exp(scales[2]);
    const double r = std::sqrt(5.0) * std::sqrt(a * a + b * b + c * c);
    const double product = p[0] * q[0] + p[1] * q[1];
    const double quadratic = std::exp(scales[4]) * product + std::exp(scales[5]) * product * product;
    return 1 + std::exp(scales[3]) * (1 + r + r * r / 3) * std::exp(-r) + quadratic;
}

MatrixXd random_points(Index count, std::uint64_t seed) {
    RandomStream random(seed, Purpose::test);
    MatrixXd points(3, count);
    for (Index i = 0; i < count; ++i) {
        points.col(i) << random.uniform(), random.uniform(), (static_cast<double>(random.below(3)) + 0.5) / 3;
    }
    return points;
}

VectorXd wavy(const MatrixXd& points) {
    return (5 * points.row(0).array()).sin() + points.row(2).array();
}

}  // namespace

TEST_CASE("predict: mean and deviation match the formulas with an explicit inverse") {
    for (const bool has_quadratic : {false, true}) {
        CAPTURE(has_quadratic);
        GaussianProcess process = process_of_three(has_quadratic);
        const MatrixXd known = random_points(12, 1);
        const MatrixXd asked = random_points(5, 2);
        const VectorXd values = wavy(known);
        process.fit(known, values);
        process.condition(known, values);
        const auto found = process.predict(asked);

        const VectorXd scales = process.log_scales();
        const double noise = std::exp(scales[6]) + 1e-8 * (1 + std::exp(scales[3]));
        MatrixXd all(12, 12);
        for (Index i = 0; i < 12; ++i) {
            for (Index j = 0; j < 12; ++j) {
                all(i, j) = covariance(known.col(i), known.col(j), scales) + (i == j ? noise : 0);
            }
        }
        const MatrixXd inverse = all.inverse();
        for (Index i = 0; i < 5; ++i) {
            VectorXd k(12);
            for (Index j = 0; j < 12; ++j) {
                k[j] = covariance(asked.col(i), known.col(j), scales);
            }
            const double own = covariance(asked.col(i), asked.col(i), scales);
            CHECK(found.mean[i] == doctest::Approx(k.dot(inverse * values)).epsilon(1e-5));
            CHECK(found.deviation[i] == doctest::Approx(std::sqrt(own - k.dot(inverse * k))).epsilon(1e-4));
            VectorXd gradient;
            CHECK(process.lower_bound(asked.col(i), 2, gradient) ==
                  doctest::Approx(found.mean[i] - 2 * found.deviation[i]).epsilon(1e-9));
        }
    }
}

TEST_CASE("negative_log_posterior: the gradient by each scale matches finite differences") {
    const MatrixXd points = random_points(30, 4);
    const VectorXd values = wavy(points);
    for (const bool has_quadratic : {false, true}) {
        const GaussianProcess process = process_of_three(has_quadratic);
        RandomStream random(7, Purpose::test);
        for (int round = 0; round < 5; ++round) {
            VectorXd scales = process.log_scales();
            for (double& scale : scales) {
                scale += 0.5 * random.normal();
            }
            VectorXd gradient;
            VectorXd unused;
            process.negative_log_posterior(scales, points, values, gradient);
            for (Index i = 0; i < scales.size(); ++i) {
                CAPTURE(has_quadratic);
                CAPTURE(i);
                constexpr double step = 1e-5;
                VectorXd moved = scales;
                moved[i] += step;
                const double above = process.negative_log_posterior(moved, points, values, unused);
                moved[i] -= 2 * step;
                const double below = process.negative_log_posterior(moved, points, values, unused);
                CHECK(gradient[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-5).scale(1));
            }
        }
    }
}

TEST_CASE("lower_bound: the gradient by a number matches finite differences, and the gradient by a choice is 0") {
    const MatrixXd points = random_points(30, 4);
    for (const bool has_quadratic : {false, true}) {
        GaussianProcess process = process_of_three(has_quadratic);
        process.fit(points, wavy(points));
        process.condition(points, wavy(points));
        const MatrixXd asked = random_points(6, 5);
        for (Index at = 0; at < asked.cols(); ++at) {
            VectorXd gradient;
            VectorXd unused;
            process.lower_bound(asked.col(at), 1.5, gradient);
            CHECK(gradient[2] == 0);
            for (Index i = 0; i < 2; ++i) {
                CAPTURE(has_quadratic);
                CAPTURE(i);
                constexpr double step = 1e-5;
                VectorXd moved = asked.col(at);
                moved[i] += step;
                const double above = process.lower_bound(moved, 1.5, unused);
                moved[i] -= 2 * step;
                const double below = process.lower_bound(moved, 1.5, unused);
                CHECK(gradient[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-4).scale(1));
            }
        }
    }
}

TEST_CASE("fit: a gene without effect gets a longer length scale than a gene with an effect") {
    GaussianProcess process = process_of_three(false);
    const MatrixXd known = random_points(80, 3);
    process.fit(known, (6 * known.row(0).array()).sin());

    const VectorXd scales = process.log_scales();
    CHECK(scales[1] > scales[0] + std::log(2));
    CHECK(scales[2] > scales[0] + std::log(2));
    CHECK(scales[6] < std::log(0.01));
}

TEST_CASE("fit: purely random values give a large noise term") {
    GaussianProcess process = process_of_three(false);
    const MatrixXd known = random_points(80, 3);
    RandomStream random(3, Purpose::test);
    VectorXd values(80);
    for (double& value : values) {
        value = random.normal();
    }
    process.fit(known, values);

    CHECK(process.log_scales()[6] > std::log(0.3));
}

TEST_CASE("a process with a quadratic term extrapolates a quadratic from as many points as it has coefficients") {
    GaussianProcess process(VectorXd::Ones(2),
                            {.median = {.length = 1.4, .signal = 1, .linear = 0.3, .quadratic = 0.1, .noise = 0.001},
                             .deviation = {.length = 1, .signal = 1, .linear = 2, .quadratic = 2, .noise = 3},
                             .start = {.length = 1.4, .signal = 0.05, .linear = 1, .quadratic = 1, .noise = 1e-5},
                             .least_noise = 1e-7});
    RandomStream random(3, Purpose::test);
    const auto value = [](const VectorXd& z) {
        return 1 + z[0] - 0.5 * z[1] + 2 * z[0] * z[0] + z[0] * z[1] + z[1] * z[1];
    };
    MatrixXd points(2, 15);
    VectorXd values(15);
    for (Index i = 0; i < 15; ++i) {
        points.col(i) << random.normal(), random.normal();
        values[i] = value(points.col(i));
    }
    process.fit(points, values);
    process.condition(points, values);
    const MatrixXd far = MatrixXd::Constant(2, 1, 4);
    CHECK(process.predict(far).mean[0] == doctest::Approx(value(far.col(0))).epsilon(0.02));
}

TEST_CASE("repeated points and equal values give finite predictions with a positive deviation") {
    for (const bool has_quadratic : {false, true}) {
        GaussianProcess process = process_of_three(has_quadratic);
        MatrixXd points = random_points(40, 9);
        points.rightCols(20) = points.leftCols(20);
        process.fit(points, VectorXd::Zero(40));
        process.condition(points, VectorXd::Zero(40));
        const auto found = process.predict(points);
        CHECK(found.mean.cwiseAbs().maxCoeff() < 1e-9);
        CHECK(std::all_of(found.deviation.begin(), found.deviation.end(),
                          [](double deviation) { return deviation > 0; }));
    }
}

TEST_CASE("points that are far away do not change the predictions at near points") {
    GaussianProcess process = process_of_three(true);
    MatrixXd points = MatrixXd::Zero(3, 12);
    points.leftCols(8) = random_points(8, 9);
    points.rightCols(4) << MatrixXd::Constant(3, 4, 2.5e6);
    points.row(0).tail(4) += VectorXd::LinSpaced(4, 0, 3).transpose();
    const VectorXd values = wavy(points);
    process.condition(points, values);
    const auto found = process.predict(points);
    CHECK(found.deviation.allFinite());
    for (Index i = 0; i < 8; ++i) {
        CHECK(found.mean[i] == doctest::Approx(values[i]).epsilon(0.05));
    }
}

TEST_CASE("L-BFGS finds the minimum of a narrow valley, and respects the bounds of its box") {
    const Objective rosenbrock = [](const VectorXd& x, VectorXd& gradient) {
        const double across = x[1] - x[0] * x[0];
        gradient.resize(2);
        gradient << -400 * x[0] * across - 2 * (1 - x[0]), 200 * across;
        return 100 * across * across + (1 - x[0]) * (1 - x[0]);
    };
    VectorXd x = VectorXd::Constant(2, -1.5);
    const Box wide{VectorXd::Constant(2, -2), VectorXd::Constant(2, 2)};
    CHECK(minimize(rosenbrock, wide, 200, x) < 1e-6);
    CHECK(x[0] == doctest::Approx(1).epsilon(1e-2));

    x = VectorXd::Constant(2, -1.5);
    const Box narrow{VectorXd::Constant(2, -2), VectorXd::Constant(2, 0.5)};
    CHECK(minimize(rosenbrock, narrow, 200, x) == doctest::Approx(0.25).epsilon(1e-4));
    CHECK(x[0] == 0.5);
    CHECK(x[1] == doctest::Approx(0.25).epsilon(1e-3));
}

TEST_CASE("L-BFGS ends no worse than it started, even if the objective becomes NaN") {
    const Objective wall = [](const VectorXd& x, VectorXd& gradient) {
        gradient = VectorXd::Constant(1, -1);
        return x[0] > 0.5 ? std::numeric_limits<double>::quiet_NaN() : -x[0];
    };
    VectorXd x = VectorXd::Zero(1);
    const double found = minimize(wall, {VectorXd::Constant(1, -9), VectorXd::Constant(1, 9)}, 30, x);
    CHECK(found < 0);
    CHECK(x[0] <= 0.5);
}
