#pragma once

#include "unit_genome.hpp"

#include <cstddef>
#include <vector>

namespace finch::search {

/// A density over some coordinates of the unit cube: an equally weighted mixture of the uniform density and, for each
/// known point, a product of kernels centred there (Watanabe 2023, arXiv:2304.11127). A kernel is a normal
/// truncated to [0, 1]; where values are apart, its integral over a value's cell; of a choice, Aitchison and Aitken's
/// (1976). A normal's deviation is the larger distance to its neighbours in that coordinate (Bergstra et al. 2011).
class ParzenEstimator {
public:
    /// Of the coordinates `genes`. Refers to `space`.
    ParzenEstimator(const Space& space, const std::vector<std::size_t>& genes,
                    const std::vector<const UnitGenome*>& points);

    /// Draws the coordinates of `point` that it is about.
    void draw(UnitGenome& point, RandomStream& random) const;
    /// The logarithm of the density, of the probability where values are apart, at values of the genes.
    [[nodiscard]] double log_density(const UnitGenome& point) const;

private:
    /// A normal, without what lies beyond [0, 1].
    struct Kernel {
        double centre = 0;
        double deviation = 1;
        double log_inside = 0;  ///< logarithm of what lies within
    };
    struct Axis {
        const Gene* gene = nullptr;
        std::size_t coordinate = 0;
        std::vector<Kernel> kernels{};  ///< by point
        double shared = 0;              ///< of a choice: what is shared out among all options, less the more points
        double same = 0;                ///< the probability of the point's own option
        double other = 0;               ///< of each other one
    };

    /// Adds the logarithms of the kernels at `u` to `sums`, the uniform one's last.
    static void add_logarithms(const Axis& axis, double u, std::vector<double>& sums);
    [[nodiscard]] static double draw_from(const Axis& axis, const Kernel& kernel, RandomStream& random);

    std::size_t points_;
    std::vector<Axis> axes_;
};

}  // namespace finch::search
