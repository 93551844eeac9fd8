#pragma once

#include "finch/search/gene.hpp"
#include "finch/search/individual.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace finch::search {

/// A benchmark function of real genes x0 … x(n−1), to be minimised.
struct Function {
    std::string name;
    int default_dimensions = 2;
    bool any_dimensions = true;    ///< false: default_dimensions only
    std::vector<RealGene> bounds;  ///< one for all genes, or one for each
    std::vector<double> optimum;   ///< where a minimum lies: one coordinate for all genes, or one for each
    double minimum = 0;            ///< in every number of dimensions
    std::string source;            ///< where the formula is from, and which variant
    int least_dimensions = 1;
    /// At a point; without noise where `noise` is null.
    double (*value)(std::span<const double> x, RandomStream* noise) = nullptr;
    double minimum_per_gene = 0;  ///< comes to `minimum` for each gene
    bool has_noise = false;       ///< quartic
    bool falls_outside = false;   ///< has values below its minimum outside of its bounds
};

/// Propulate's fourteen: sphere, rosenbrock, step, quartic, rastrigin, griewank, schwefel, bisphere, birastrigin,
/// bukin_n6, eggcrate, himmelblau, keane, leon; and ackley, ellipsoid.
[[nodiscard]] std::span<const Function> functions();

/// The function called `name`. Throws ConfigError that lists them all, with the nearest first.
[[nodiscard]] const Function& find_function(const std::string& name);

/// Genes x0 … x(n−1) of `function`. Throws ConfigError if it has no such dimension.
[[nodiscard]] Space function_space(const Function& function, int dimensions);

/// The smallest value within the bounds, without noise.
[[nodiscard]] double minimum_of(const Function& function, int dimensions);
/// A place of it, of `dimensions` coordinates.
[[nodiscard]] std::vector<double> optimum_of(const Function& function, int dimensions);

/// The value at `x`. Noise, where the function has it, is drawn from `noise`. Throws ConfigError if the function has
/// no such dimension.
[[nodiscard]] double evaluate(const Function& function, std::span<const double> x, RandomStream& noise);
/// The same without noise.
[[nodiscard]] double evaluate_without_noise(const Function& function, std::span<const double> x);

/// Transformation of a function before it is searched, so that no search profits from an optimum in the middle of the
/// box or from genes that do not interact. `instance` alone seeds it: the same on every rank and in every run.
struct Transform {
    bool shift = false;   ///< the optimum moves to a uniformly random place
    bool rotate = false;  ///< the axes are turned about the optimum by a uniformly random orthogonal matrix
    std::int64_t instance = 1;
};

/// A function of n genes as it is searched: f(x) = function(o + R (x − o')), where o is the function's optimum, o' lies
/// in the box's inner 80 % in every coordinate (or is o), and R is orthogonal (or the identity). A function that falls
/// below its minimum outside of its box has there the value of the box's nearest point and the squared distance to it,
/// so that the minimum stays what it is.
class FunctionInstance {
public:
    /// Throws ConfigError if the function has no such dimension.
    FunctionInstance(const Function& function, int dimensions, const Transform& transform = {});

    [[nodiscard]] const Function& function() const noexcept { return *function_; }
    [[nodiscard]] int dimensions() const noexcept { return static_cast<int>(optimum_.size()); }
    [[nodiscard]] double minimum() const { return minimum_of(*function_, dimensions()); }
    /// A place of the minimum, within the bounds.
    [[nodiscard]] std::span<const double> optimum() const noexcept { return optimum_; }
    /// R as (n, n), row by row; empty if it is the identity.
    [[nodiscard]] std::span<const double> rotation() const noexcept { return rotation_; }

    /// The value at `x`; without noise where `noise` is null. Throws ConfigError if `x` has another dimension.
    [[nodiscard]] double value(std::span<const double> x, RandomStream* noise) const;

private:
    [[nodiscard]] std::vector<double> argument(std::span<const double> x) const;
    [[nodiscard]] double value_near_box(std::vector<double>& z, RandomStream* noise) const;

    const Function* function_;
    std::vector<double> origin_;   ///< o
    std::vector<double> optimum_;  ///< o'
    std::vector<double> rotation_;
    std::vector<RealGene> bounds_;
    bool is_transformed_;
};

/// Sets the loss and the outcome of `individual`. Its noise depends on `seed` and its id alone.
void evaluate(const FunctionInstance& instance, std::uint64_t seed, Individual& individual);

/// How long an evaluation pretends to last: log-normal, as trainings of different sizes do, or one of those recorded.
struct PretendedDuration {
    double median_seconds = 0;
    double spread = 0;                       ///< deviation of the logarithm; 0: always the median
    std::vector<double> recorded_seconds{};  ///< drawn from with replacement; empty: log-normal

    /// Depends on `seed` and the individual alone.
    [[nodiscard]] double seconds(std::uint64_t seed, Id individual) const;
};

}  // namespace finch::search
