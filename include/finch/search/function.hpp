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
    double minimum = 0;            ///< for the default number of dimensions
    std::string source;            ///< where the formula is from, and which variant
    int least_dimensions = 1;
    double (*value)(std::span<const double> x, RandomStream& noise) = nullptr;
};

/// Propulate's fourteen: sphere, rosenbrock, step, quartic, rastrigin, griewank, schwefel, bisphere, birastrigin,
/// bukin_n6, eggcrate, himmelblau, keane, leon.
[[nodiscard]] std::span<const Function> functions();

/// The function called `name`. Throws ConfigError that lists them all, with the nearest first.
[[nodiscard]] const Function& find_function(const std::string& name);

/// Genes x0 … x(n−1) of `function`. Throws ConfigError where it has no such dimension.
[[nodiscard]] Space function_space(const Function& function, int dimensions);

/// The value at `x`. Noise, where the function has it (quartic), is drawn from `noise`. Throws ConfigError where the
/// function has no such dimension.
[[nodiscard]] double evaluate(const Function& function, std::span<const double> x, RandomStream& noise);

}  // namespace finch::search
