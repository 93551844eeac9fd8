#pragma once

#include "finch/search/gene.hpp"

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

}  // namespace finch::search
