#pragma once

#include "gaussian_process.hpp"

#include <Eigen/Dense>
#include <iterator>
#include <vector>

namespace finch::search {

/// Combines the values of several objectives into one, along a direction: the largest of (value − reference) / scale. A
/// minimum of this number over random directions is a point of the front, and its mean over directions grows with the
/// hypervolume (Zhang and Golovin 2020, "Random Hypervolume Scalarizations for Provable Multi-Objective Black Box
/// Optimization"). With one objective the combined value is this objective.
struct Scalarisation {
    Eigen::VectorXd reference = Eigen::VectorXd::Zero(1);
    Eigen::VectorXd scale = Eigen::VectorXd::Ones(1);

    /// Returns the objective that determines the combined value of `values`.
    [[nodiscard]] Eigen::Index decisive(const Eigen::VectorXd& values) const;
    [[nodiscard]] double of(const Eigen::VectorXd& values) const;
    /// Returns the combination of values y that gives the same as this one of y · `deviation` + `mean`.
    [[nodiscard]] Scalarisation standardised(const Eigen::VectorXd& mean, const Eigen::VectorXd& deviation) const;
};

/// Returns the scalarisation along `direction` whose reference point is the largest values of the front of `values`,
/// and a tenth of the front's range more. An objective in which all `values` agree is never decisive, unless they agree
/// in all objectives. `values`: one row per objective, one column per point.
[[nodiscard]] Scalarisation along(const Eigen::VectorXd& direction, const Eigen::MatrixXd& values);

/// A Gaussian process for each objective.
class ObjectiveModels {
public:
    ObjectiveModels(const Eigen::VectorXd& is_number, const GaussianPrior& prior, Eigen::Index objectives)
        : processes_(static_cast<std::size_t>(objectives), GaussianProcess(is_number, prior)) {}

    [[nodiscard]] Eigen::Index objectives() const noexcept { return std::ssize(processes_); }
    /// `values`: one row per objective, one column per point.
    void fit(const Eigen::MatrixXd& points, const Eigen::MatrixXd& values);
    void condition(const Eigen::MatrixXd& points, const Eigen::MatrixXd& values, const Scalarisation& scalarisation);
    void believe(const Eigen::MatrixXd& points);

    /// Returns the combined lower bound for each column of `points`: the scalarisation of μ − `kappa` σ.
    [[nodiscard]] Eigen::VectorXd lower_bounds(const Eigen::MatrixXd& points, double kappa) const;
    /// Returns the combined lower bound at a point, and its gradient. The gradient is 0 for choices.
    double lower_bound(const Eigen::VectorXd& point, double kappa, Eigen::VectorXd& gradient) const;

private:
    std::vector<GaussianProcess> processes_;
    Scalarisation scalarisation_;
};

}  // namespace finch::search
