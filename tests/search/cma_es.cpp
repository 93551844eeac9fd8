#include "search/propagators/cma_es.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <vector>

using namespace finch;
using namespace finch::search;

namespace {

constexpr int genes = 10;

using VectorFunction = std::function<double(const Eigen::VectorXd&)>;

double vector_sphere(const Eigen::VectorXd& x) {
    return x.squaredNorm();
}
double vector_ellipsoid(const Eigen::VectorXd& x) {
    double sum = 0;
    for (int i = 0; i < genes; ++i) {
        sum += std::pow(10, 6.0 * i / (genes - 1)) * x[i] * x[i];
    }
    return sum;
}
double vector_rosenbrock(const Eigen::VectorXd& x) {
    double sum = 0;
    for (int i = 0; i + 1 < genes; ++i) {
        sum += 100 * std::pow(x[i + 1] - x[i] * x[i], 2) + std::pow(1 - x[i], 2);
    }
    return sum;
}
Eigen::MatrixXd rotation() {
    RandomStream random(7, Purpose::test);
    Eigen::MatrixXd matrix(genes, genes);
    for (Eigen::Index i = 0; i < matrix.size(); ++i) {
        matrix.data()[i] = random.normal();
    }
    return Eigen::HouseholderQR<Eigen::MatrixXd>(matrix).householderQ();
}

/// Maps the unit cube to [-5, 5] in each coordinate.
Eigen::VectorXd scaled(const UnitGenome& point) {
    return 10 * Eigen::Map<const Eigen::VectorXd>(point.data(), genes).array() - 5;
}

/// Returns the number of evaluations to reach a loss of 1e-8 from a random start.
int evaluations(const VectorFunction& function, std::uint64_t seed) {
    RandomStream random(seed, Purpose::test);
    CmaEs cma(random_point(genes, random), 0.2);
    for (int count = 1; count < 100'000; ++count) {
        const UnitGenome point = cma.sample(random);
        const double loss = function(scaled(point));
        if (loss < 1e-8) {
            return count;
        }
        cma.take(point, loss);
    }
    return 100'000;
}

int median_of_evaluations(const VectorFunction& function) {
    std::vector<int> counts;
    for (std::uint64_t seed = 1; seed <= 11; ++seed) {
        counts.push_back(evaluations(function, seed));
    }
    std::sort(counts.begin(), counts.end());
    return counts[5];
}

}  // namespace

// The expected numbers come from tools/fixtures/cmaes_evaluations.py.
TEST_CASE("CMA-ES needs at most 10 % more evaluations than the Python package cmaes") {
    const Eigen::MatrixXd turned = rotation();
    CHECK(median_of_evaluations(vector_sphere) < 1.1 * 1474);
    CHECK(median_of_evaluations(vector_ellipsoid) < 1.1 * 4211);
    CHECK(median_of_evaluations([&](const Eigen::VectorXd& x) { return vector_ellipsoid(turned * x); }) < 1.1 * 4231);
    CHECK(median_of_evaluations(vector_rosenbrock) < 1.1 * 5458);
}

TEST_CASE("CMA-ES depends on the order of the losses only, not on their values") {
    const auto trajectory = [](const std::function<double(double)>& transform) {
        RandomStream random(3, Purpose::test);
        CmaEs cma(random_point(genes, random), 0.2);
        std::vector<double> all;
        for (int i = 0; i < 500; ++i) {
            const UnitGenome point = cma.sample(random);
            cma.take(point, transform(vector_ellipsoid(scaled(point))));
            all.insert(all.end(), point.begin(), point.end());
        }
        return all;
    };
    const auto plain = trajectory([](double loss) { return loss; });

    CHECK(trajectory([](double loss) { return std::log(loss); }) == plain);
    CHECK(trajectory([](double loss) { return -1 / (1 + loss); }) == plain);
    CHECK(trajectory([](double loss) { return loss * loss * loss; }) == plain);
}

TEST_CASE("CMA-ES: the position of the optimum in the cube does not change the path of the mean") {
    const auto mean_after = [](double shift) {
        RandomStream random(5, Purpose::test);
        CmaEs cma(UnitGenome(genes, 0.4 + shift), 0.02);
        const Eigen::VectorXd optimum = Eigen::VectorXd::Constant(genes, 0.45 + shift);
        for (int i = 0; i < 400; ++i) {
            const UnitGenome point = cma.sample(random);
            cma.take(point, (Eigen::Map<const Eigen::VectorXd>(point.data(), genes) - optimum).squaredNorm());
        }
        return (cma.mean().array() - shift).eval();
    };

    CHECK((mean_after(0) - mean_after(0.125)).abs().maxCoeff() < 1e-9);
}

TEST_CASE("CMA-ES samples are in the unit cube, even if the mean is a corner of the cube") {
    RandomStream random(1, Purpose::test);
    const CmaEs cma(UnitGenome(genes, 0.0), 0.5);
    for (int i = 0; i < 1000; ++i) {
        const UnitGenome point = cma.sample(random);
        CHECK(std::all_of(point.begin(), point.end(), [](double x) { return 0 <= x && x <= 1; }));
    }
}

TEST_CASE("CMA-ES converges despite late results, points that it did not sample, and huge losses") {
    RandomStream random(2, Purpose::test);
    CmaEs cma(random_point(genes, random), 0.2);
    std::vector<UnitGenome> late;
    for (int i = 0; i < 6000; ++i) {
        late.push_back(cma.sample(random));
        if (late.size() > 40) {  // results arrive 40 samples late
            cma.take(late.front(),
                     i % 97 == 0 ? std::numeric_limits<double>::max() : vector_sphere(scaled(late.front())));
            late.erase(late.begin());
        }
        if (i % 50 == 0) {
            const UnitGenome elsewhere = random_point(genes, random);
            cma.take(elsewhere, vector_sphere(scaled(elsewhere)));
        }
    }
    CHECK(cma.covariance().allFinite());
    CHECK(std::isfinite(cma.sigma()));
    CHECK(cma.best_loss() < 1e-6);
}

TEST_CASE("CMA-ES ends on a constant loss, and is hopeless if its progress is too slow for the target") {
    RandomStream random(4, Purpose::test);
    CmaEs flat(random_point(genes, random), 0.2);
    CmaEs stuck(random_point(genes, random), 0.2);
    for (int i = 0; i < 3000 && !flat.has_ended(); ++i) {
        flat.take(flat.sample(random), 1);
        const UnitGenome point = stuck.sample(random);
        stuck.take(point, 30 + vector_sphere(scaled(point)));
    }
    CHECK(flat.has_ended());
    for (int i = 0; i < 3000; ++i) {
        const UnitGenome point = stuck.sample(random);
        stuck.take(point, 30 + vector_sphere(scaled(point)));
    }
    CHECK(stuck.is_hopeless(1));
    CHECK_FALSE(stuck.is_hopeless(stuck.best_loss()));
}

TEST_CASE("mirrored normals: pairs are opposite, pairs of a block are orthogonal, and all together are normal") {
    constexpr std::uint64_t blocks = 2000;
    for (const Eigen::Index n : {1, 2, 5}) {
        CAPTURE(n);
        Eigen::MatrixXd moments = Eigen::MatrixXd::Zero(n, n);
        Eigen::VectorXd fourth = Eigen::VectorXd::Zero(n);
        const auto in_block = 2 * static_cast<std::uint64_t>(n);
        for (std::uint64_t block = 0; block < blocks; ++block) {
            Eigen::MatrixXd firsts(n, n);
            for (Eigen::Index pair = 0; pair < n; ++pair) {
                const std::uint64_t number = block * in_block + 2 * static_cast<std::uint64_t>(pair);
                firsts.col(pair) = mirrored_normals(n, number, 3, 1);
                REQUIRE(mirrored_normals(n, number + 1, 3, 1) == -firsts.col(pair));
            }
            Eigen::MatrixXd products = firsts.transpose() * firsts;
            products.diagonal().setZero();
            REQUIRE(products.cwiseAbs().maxCoeff() < 1e-12);
            moments += firsts * firsts.transpose() / static_cast<double>(n);
            fourth += firsts.array().pow(4).matrix().rowwise().sum() / static_cast<double>(n);
        }
        moments /= static_cast<double>(blocks);
        CHECK((moments - Eigen::MatrixXd::Identity(n, n)).cwiseAbs().maxCoeff() < 0.1);
        CHECK((fourth / static_cast<double>(blocks) - Eigen::VectorXd::Constant(n, 3)).cwiseAbs().maxCoeff() < 0.5);
    }
    CHECK(mirrored_normals(5, 8, 3, 1) != mirrored_normals(5, 8, 3, 2));
    CHECK(mirrored_normals(5, 8, 3, 1) != mirrored_normals(5, 8, 4, 1));
}
