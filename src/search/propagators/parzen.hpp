#pragma once

#include "unit_genome.hpp"

#include <cstddef>
#include <vector>

namespace finch::search {

/// A probability density over some coordinates of the unit cube (Watanabe 2023, arXiv:2304.11127). The density is an
/// equally weighted mixture of the uniform density and, for each known point, a product of kernels centred at this
/// point. Each kind of gene has its own kernel:
/// - real gene: a normal density truncated to [0, 1], with the larger distance to the two neighbouring points as its
///   deviation (Bergstra et al. 2011).
/// - discrete gene: the integral of such a normal density over a value's cell.
/// - unordered choice: the kernel of Aitchison and Aitken (1976).
class ParzenEstimator {
public:
    /// Estimates the density over the coordinates `genes`. Keeps a reference to `space`.
    ParzenEstimator(const Space& space, const std::vector<std::size_t>& genes,
                    const std::vector<const UnitGenome*>& points);

    /// Draws those coordinates of `point` over which the density is defined.
    void draw(UnitGenome& point, RandomStream& random) const;
    /// Returns the logarithm of the density at `point` (for discrete genes, of the probability). `point` must be the
    /// point of a genome.
    [[nodiscard]] double log_density(const UnitGenome& point) const;

private:
    /// A normal density, truncated to [0, 1].
    struct Kernel {
        double centre = 0;
        double deviation = 1;
        double log_inside = 0;  ///< logarithm of the probability of [0, 1]
    };
    struct Axis {
        const Gene* gene = nullptr;
        std::size_t coordinate = 0;
        std::vector<Kernel> kernels{};  ///< one per point
        double shared = 0;  ///< of a choice: the probability that all options share; less if there are more points
        double same = 0;    ///< probability of the point's own option
        double other = 0;   ///< probability of each other option
    };

    /// Adds the logarithm of each kernel's density at `u` to `sums`. The last sum is for the uniform density.
    static void add_logarithms(const Axis& axis, double u, std::vector<double>& sums);
    [[nodiscard]] static double draw_from(const Axis& axis, const Kernel& kernel, RandomStream& random);

    std::size_t points_;
    std::vector<Axis> axes_;
};

}  // namespace finch::search
