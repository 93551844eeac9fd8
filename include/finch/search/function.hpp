#pragma once

#include "finch/search/gene.hpp"
#include "finch/search/individual.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace finch::search {

/// A benchmark function of real genes x0 … x(n−1), to be minimised. Its smallest value is 0.
struct Function {
    std::string name;
    int default_dimensions = 2;
    int least_dimensions = 1;
    RealGene bounds;              ///< of every gene
    std::vector<double> optimum;  ///< position of a minimum: one coordinate for all genes, or one per gene
    std::string source;           ///< origin and variant of the formula
    double (*value)(std::span<const double> x) = nullptr;
    bool falls_outside = false;  ///< has negative values outside its bounds
};

/// Returns all benchmark functions. They are Propulate's functions with the names sphere, rosenbrock (a curved valley),
/// rastrigin (many optima, separable), griewank (many optima, not separable), schwefel (its best optima are far apart)
/// and birastrigin (a second funnel leads away from the optimum).
[[nodiscard]] std::span<const Function> functions();

/// Returns the function called `name`. Throws ConfigError if there is no such function; the message lists all names,
/// the most similar first.
[[nodiscard]] const Function& find_function(std::string_view name);

/// Returns the search space of `function`: genes x0 … x(n−1). Throws ConfigError if the function does not have this
/// number of dimensions.
[[nodiscard]] Space function_space(const Function& function, int dimensions);

/// A transformation of a benchmark function. Without a transformation, a search could profit from an optimum in the
/// middle of the box, or from genes that do not interact. The transformation depends only on the seed `instance`, so it
/// is the same on every rank and in every run.
struct Transform {
    bool shift = false;   ///< moves the optimum to a uniformly random position
    bool rotate = false;  ///< rotates the axes about the optimum by a uniformly random orthogonal matrix
    std::int64_t instance = 1;
};

/// A benchmark function of n genes after its transformation: f(x) = function(o + R (x − o')). The optimum of the
/// original function is o. The optimum o' of the transformed function is in the inner 80 % of the box in every
/// coordinate, or equal to o. The matrix R is orthogonal, or the identity. Some functions have values below their
/// minimum outside their box. If the argument of such a function is outside its box, f is the value at the nearest
/// point of the box plus the squared distance to it, so the minimum stays the same.
class FunctionInstance {
public:
    /// Throws ConfigError if the function does not have this number of dimensions.
    FunctionInstance(const Function& function, int dimensions, const Transform& transform = {});

    [[nodiscard]] const Function& function() const noexcept { return *function_; }
    [[nodiscard]] int dimensions() const noexcept { return static_cast<int>(optimum_.size()); }
    /// Returns the coordinates of a minimum within the bounds.
    [[nodiscard]] std::span<const double> optimum() const noexcept { return optimum_; }
    /// Returns R as an (n, n) matrix in row-major order; empty if R is the identity.
    [[nodiscard]] std::span<const double> rotation() const noexcept { return rotation_; }

    /// Returns the value at `x`. Throws ConfigError if `x` has another number of dimensions.
    [[nodiscard]] double value(std::span<const double> x) const;

private:
    [[nodiscard]] std::vector<double> argument(std::span<const double> x) const;
    [[nodiscard]] double value_near_box(std::vector<double>& z) const;

    const Function* function_;
    std::vector<double> origin_;   ///< o
    std::vector<double> optimum_;  ///< o'
    std::vector<double> rotation_;
    bool is_transformed_;
};

/// Sets the loss and the outcome of `individual`.
void evaluate(const FunctionInstance& instance, Individual& individual);

/// The simulated duration of an evaluation. Durations are log-normal, like those of trainings of different sizes, or
/// drawn from recorded durations.
struct PretendedDuration {
    double median_seconds = 0;
    double spread = 0;                       ///< standard deviation of the logarithm; 0: always the median
    std::vector<double> recorded_seconds{};  ///< durations to draw from, with replacement; empty: log-normal

    /// Returns a duration that depends only on `seed` and `individual`.
    [[nodiscard]] double seconds(std::uint64_t seed, Id individual) const;
};

}  // namespace finch::search
