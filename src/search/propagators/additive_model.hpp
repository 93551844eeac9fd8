#pragma once

#include "unit_genome.hpp"

#include <cstddef>
#include <vector>

namespace finch::search {

/// A regression of the loss as a sum of one curve per gene: piecewise linear functions with few knots, as in a
/// generalised additive model (Hastie and Tibshirani 1986). A few results per gene determine all curves, so a search
/// with many concurrent evaluations learns from a single generation in which range each gene is good.
class AdditiveModel {
public:
    /// A fit is due after every `fit_after` results.
    explicit AdditiveModel(std::size_t fit_after = 64) : fit_after_(fit_after) {}

    /// Adds a result. The model uses the best 1 500 results. Results without a complete training are ignored.
    void take(const UnitGenome& point, double loss);
    /// Returns whether a fit was due with at least five results per gene.
    [[nodiscard]] bool is_ready() const noexcept { return !fitted_.empty(); }
    /// Returns the approximate CPU time of a fit.
    [[nodiscard]] double seconds() const noexcept;
    /// Returns the best of `tries` random values of gene number `which`. Most of these values have the distribution of
    /// the best results' values. Requires is_ready(). Fits the model to the results at the last due time, unless it is
    /// fitted to them.
    [[nodiscard]] double draw(const Space& space, std::size_t which, int tries, RandomStream& random) const;

private:
    struct Result {
        UnitGenome point;
        double loss = 0;
    };
    struct Curve {
        std::vector<double> knots;  ///< from 0 to 1
        std::vector<double> values;

        /// Returns the number of the knot at or below `x`.
        [[nodiscard]] std::size_t below(double x) const;
        /// Returns the weight of the next knot in the linear interpolation at `x`.
        [[nodiscard]] double weight(std::size_t knot, double x) const;
        [[nodiscard]] double at(double x) const;
    };

    [[nodiscard]] std::vector<double> knots_of(std::size_t gene) const;
    void fit() const;

    std::size_t fit_after_;
    std::size_t since_due_ = 0;
    std::vector<Result> best_;           ///< best first
    std::vector<Result> fitted_;         ///< the best results when a fit was last due
    mutable std::vector<Curve> curves_;  ///< by gene; empty: not yet fitted
};

}  // namespace finch::search
