#include "additive_model.hpp"

#include "finch/search/individual.hpp"

#include <Eigen/Sparse>
#include <algorithm>
#include <cmath>
#include <limits>

namespace finch::search {
namespace {

using Eigen::Index;

constexpr std::size_t most_results = 1500;
constexpr std::size_t results_per_gene = 5;
constexpr std::size_t most_knots = 32;  ///< of a curve, without its ends
constexpr std::size_t results_per_knot = 4;
constexpr double least_distance = 1e-9;  ///< of two knots
constexpr double roughness = 0.2;        ///< weight of the squared differences of neighbouring knots
constexpr double ridge = 1e-3;
constexpr Index most_iterations = 30;
constexpr double seconds_per_value = 3e-7;  ///< of a fit, for each gene of each result
constexpr double anywhere = 0.1;            ///< fraction of the tried values that are uniformly random

}  // namespace

std::size_t AdditiveModel::Curve::below(double x) const {
    return static_cast<std::size_t>(std::upper_bound(knots.begin() + 1, knots.end() - 1, x) - knots.begin()) - 1;
}

double AdditiveModel::Curve::weight(std::size_t knot, double x) const {
    return (x - knots[knot]) / (knots[knot + 1] - knots[knot]);
}

double AdditiveModel::Curve::at(double x) const {
    const std::size_t knot = below(x);
    return std::lerp(values[knot], values[knot + 1], weight(knot, x));
}

void AdditiveModel::take(const UnitGenome& point, double loss) {
    ++since_due_;
    if (loss < least_pruned && (best_.size() < most_results || loss < best_.back().loss)) {
        const auto place =
            std::upper_bound(best_.begin(), best_.end(), loss, [](double a, const Result& b) { return a < b.loss; });
        best_.insert(place, {point, loss});
        best_.resize(std::min(best_.size(), most_results));
    }
    if (since_due_ >= fit_after_ && best_.size() >= results_per_gene * point.size()) {
        since_due_ = 0;
        fitted_ = best_;
        curves_.clear();
    }
}

double AdditiveModel::seconds() const noexcept {
    return fitted_.empty() ? 0 : seconds_per_value * static_cast<double>(fitted_.size() * fitted_.front().point.size());
}

/// Returns quantiles of the gene's values, and the ends of the range.
std::vector<double> AdditiveModel::knots_of(std::size_t gene) const {
    std::vector<double> values;
    for (const Result& result : fitted_) {
        values.push_back(result.point[gene]);
    }
    std::sort(values.begin(), values.end());
    const std::size_t count = std::clamp<std::size_t>(values.size() / results_per_knot, 1, most_knots);
    std::vector<double> knots{0};
    for (std::size_t i = 0; i < count; ++i) {
        const double value = values[(2 * i + 1) * values.size() / (2 * count)];
        if (value > knots.back() + least_distance && value < 1 - least_distance) {
            knots.push_back(value);
        }
    }
    knots.push_back(1);
    return knots;
}

/// Minimises the squared errors, plus penalties for steps between neighbouring knots and for large values.
void AdditiveModel::fit() const {
    std::vector<Eigen::Triplet<double>> entries;
    Index row = std::ssize(fitted_);
    Index column = 0;
    for (std::size_t gene = 0; gene < fitted_.front().point.size(); ++gene) {
        const Curve& curve = curves_.emplace_back(Curve{knots_of(gene), {}});
        for (std::size_t i = 0; i < fitted_.size(); ++i) {
            const double x = fitted_[i].point[gene];
            const std::size_t knot = curve.below(x);
            const double weight = curve.weight(knot, x);
            const Index at = column + static_cast<Index>(knot);
            entries.emplace_back(static_cast<Index>(i), at, 1 - weight);
            entries.emplace_back(static_cast<Index>(i), at + 1, weight);
        }
        for (std::size_t knot = 0; knot < curve.knots.size(); ++knot, ++column) {
            entries.emplace_back(row++, column, std::sqrt(ridge));
            if (knot > 0) {
                entries.emplace_back(row, column - 1, -std::sqrt(roughness));
                entries.emplace_back(row++, column, std::sqrt(roughness));
            }
        }
    }
    Eigen::SparseMatrix<double, Eigen::RowMajor> matrix(row, column);
    matrix.setFromTriplets(entries.begin(), entries.end());
    Eigen::VectorXd losses = Eigen::VectorXd::Zero(row);
    double mean = 0;
    for (const Result& result : fitted_) {
        mean += result.loss / static_cast<double>(fitted_.size());
    }
    for (std::size_t i = 0; i < fitted_.size(); ++i) {
        losses[static_cast<Index>(i)] = fitted_[i].loss - mean;
    }
    losses /= std::max(std::numeric_limits<double>::min(), losses.cwiseAbs().maxCoeff());
    Eigen::LeastSquaresConjugateGradient<Eigen::SparseMatrix<double, Eigen::RowMajor>> solver(matrix);
    solver.setMaxIterations(most_iterations);
    const Eigen::VectorXd values = solver.solve(losses);
    const double* next = values.data();
    for (Curve& curve : curves_) {
        curve.values.assign(next, next + curve.knots.size());
        next += curve.knots.size();
    }
}

double AdditiveModel::draw(const Space& space, std::size_t which, int tries, RandomStream& random) const {
    if (curves_.empty()) {
        fit();
    }
    const Gene& gene = space.genes[which];
    const bool is_discrete = value_count(gene).has_value();
    const Curve& curve = curves_[which];
    double best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int attempt = 0; attempt < tries; ++attempt) {
        double x = random.uniform();
        if (random.uniform() >= anywhere) {
            const auto knot = static_cast<std::size_t>(random.below(curve.knots.size() - 1));
            x = std::lerp(curve.knots[knot], curve.knots[knot + 1], x);
        }
        x = is_discrete ? to_unit(gene, from_unit(gene, x)) : x;
        if (const double value = curve.at(x); value < least) {
            least = value;
            best = x;
        }
    }
    return best;
}

}  // namespace finch::search
