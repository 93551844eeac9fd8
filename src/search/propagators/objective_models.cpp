#include "objective_models.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace finch::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double beyond_front = 0.1;  ///< distance of the reference point from the front / range of the front

/// Returns the columns of `values` that no other column dominates.
MatrixXd front_of(const MatrixXd& values) {
    std::vector<Index> front;
    for (Index i = 0; i < values.cols(); ++i) {
        const auto dominates = [&](Index a, Index b) {
            return (values.col(a).array() <= values.col(b).array()).all() &&
                   (values.col(a).array() < values.col(b).array()).any();
        };
        if (std::none_of(front.begin(), front.end(), [&](Index other) { return dominates(other, i); })) {
            std::erase_if(front, [&](Index other) { return dominates(i, other); });
            front.push_back(i);
        }
    }
    return values(Eigen::indexing::all, front);
}

}  // namespace

Index Scalarisation::decisive(const VectorXd& values) const {
    Index row = 0;
    ((values - reference).array() / scale.array()).maxCoeff(&row);
    return row;
}

double Scalarisation::of(const VectorXd& values) const {
    return ((values - reference).array() / scale.array()).maxCoeff();
}

Scalarisation Scalarisation::standardised(const VectorXd& mean, const VectorXd& deviation) const {
    if (reference.size() == 1) {
        return {};
    }
    return {(reference - mean).cwiseQuotient(deviation), scale.cwiseQuotient(deviation)};
}

Scalarisation along(const VectorXd& direction, const MatrixXd& values) {
    if (direction.size() == 1) {
        return {};
    }
    if (values.cols() == 0) {
        return {VectorXd::Zero(direction.size()), direction};
    }
    const MatrixXd front = front_of(values);
    const VectorXd most = front.rowwise().maxCoeff();
    VectorXd range = most - front.rowwise().minCoeff();
    for (Index row = 0; row < range.size(); ++row) {
        // While all points of the front agree in an objective, the range of all points counts.
        range[row] = range[row] > 0 ? range[row] : values.row(row).maxCoeff() - values.row(row).minCoeff();
    }
    if ((range.array() == 0).all()) {
        range.setOnes();
    }
    Scalarisation combined{most + beyond_front * range, range.cwiseProduct(direction)};
    for (Index row = 0; row < range.size(); ++row) {
        if (range[row] == 0) {  // an objective in which all points agree is never the decisive one
            combined.reference[row] = std::numeric_limits<double>::infinity();
            combined.scale[row] = 1;
        }
    }
    return combined;
}

void ObjectiveModels::fit(const MatrixXd& points, const MatrixXd& values) {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        processes_[i].fit(points, values.row(static_cast<Index>(i)));
    }
}

void ObjectiveModels::condition(const MatrixXd& points, const MatrixXd& values, const Scalarisation& scalarisation) {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        processes_[i].condition(points, values.row(static_cast<Index>(i)));
    }
    scalarisation_ = scalarisation;
}

void ObjectiveModels::believe(const MatrixXd& points) {
    for (GaussianProcess& process : processes_) {
        process.believe(points);
    }
}

VectorXd ObjectiveModels::lower_bounds(const MatrixXd& points, double kappa) const {
    MatrixXd bounds(std::ssize(processes_), points.cols());
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        const auto predicted = processes_[i].predict(points);
        bounds.row(static_cast<Index>(i)) = predicted.mean - kappa * predicted.deviation;
    }
    VectorXd combined(points.cols());
    for (Index i = 0; i < combined.size(); ++i) {
        combined[i] = scalarisation_.of(bounds.col(i));
    }
    return combined;
}

double ObjectiveModels::lower_bound(const VectorXd& point, double kappa, VectorXd& gradient) const {
    VectorXd bounds(std::ssize(processes_));
    MatrixXd gradients(point.size(), bounds.size());
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        bounds[static_cast<Index>(i)] = processes_[i].lower_bound(point, kappa, gradient);
        gradients.col(static_cast<Index>(i)) = gradient;
    }
    const Index decisive = scalarisation_.decisive(bounds);
    gradient = gradients.col(decisive) / scalarisation_.scale[decisive];
    return scalarisation_.of(bounds);
}

}  // namespace finch::search
