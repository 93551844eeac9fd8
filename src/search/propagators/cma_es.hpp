#pragma once

#include "coordinates.hpp"
#include "unit_genome.hpp"

#include <Eigen/Dense>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace finch::search {

struct CmaEsSettings {
    int samples = 0;             ///< per generation, at least 4; 0: 4 + 3 ln n
    Thresholds thresholds = {};  ///< for coordinates as in coordinates.hpp; empty: the unit cube
    double flat = 1e-10;         ///< losses that differ by no more than this count as equal
};

/// Returns `genes` standard normal numbers for the sample `number` of a sequence. The samples 2k and 2k + 1 are
/// opposite, and the pairs of each block of 2 · `genes` samples are orthogonal (Wang, Emmerich and Bäck, "Mirrored
/// Orthogonal Sampling for Covariance Matrix Adaptation Evolution Strategies", Evolutionary Computation 27(4), 2019).
[[nodiscard]] Eigen::VectorXd mirrored_normals(Eigen::Index genes, std::uint64_t number, std::uint64_t seed,
                                               std::uint32_t island);

/// One start of CMA-ES with negative weights on the unit cube. Names and constants follow Hansen, "The CMA Evolution
/// Strategy: A Tutorial", arXiv:1604.00772v2. Results may come in any order and from older distributions. A result that
/// is too far from the mean for the present distribution is moved closer, like an injected solution (Hansen, "Injecting
/// external solutions", arXiv:1110.4181). A margin keeps the neighbouring values of discrete genes reachable
/// (coordinates.hpp).
class CmaEs {
public:
    CmaEs(const UnitGenome& mean, double sigma, CmaEsSettings settings = {});

    /// Draws a sample. If a real coordinate is out of bounds, draws again up to four times, then mirrors the coordinate
    /// at the bounds.
    [[nodiscard]] UnitGenome sample(RandomStream& random) const;
    /// Like sample(random), but uses the standard normal numbers `z` for the first draw.
    [[nodiscard]] UnitGenome sample(RandomStream& random, const Eigen::VectorXd& z) const;
    void take(const UnitGenome& point, double loss);
    /// Like take(point, loss), but for discrete genes. A discrete value does not determine the exact coordinate of its
    /// sample, and a NaN does not determine it at all. An exact coordinate has no influence on the loss, so it is drawn
    /// from the present distribution, given the other coordinates (Gibbs sampling).
    void take(const UnitGenome& point, double loss, RandomStream& random);

    /// Returns whether a stopping criterion of CMA-ES is met: the steps or the loss differences of the last generations
    /// are too small, or the axis lengths differ too much.
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
    /// Returns whether progress is too slow to reach the loss `target`. Progress is too slow if the last window of
    /// generations improved on the window before by less than a quarter of the distance to `target`.
    [[nodiscard]] bool is_hopeless(double target) const;
    /// Returns whether neither the best nor the median losses of recent generations have improved (the criterion
    /// Stagnation of Hansen, "Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed", 2009).
    [[nodiscard]] bool has_stagnated() const;

    [[nodiscard]] double best_loss() const noexcept { return best_loss_; }
    [[nodiscard]] const UnitGenome& best_point() const noexcept { return best_point_; }
    [[nodiscard]] std::int64_t generations() const noexcept { return generation_; }
    /// Returns whether the last result completed a generation.
    [[nodiscard]] bool is_between_generations() const noexcept { return samples_.empty(); }
    [[nodiscard]] int samples() const noexcept { return lambda_; }
    [[nodiscard]] double sigma() const noexcept { return sigma_; }
    [[nodiscard]] const Eigen::VectorXd& mean() const noexcept { return mean_; }
    [[nodiscard]] const Eigen::MatrixXd& covariance() const noexcept { return covariance_; }

private:
    struct Sample {
        Eigen::VectorXd point;
        double loss = 0;
    };

    [[nodiscard]] bool is_within_bounds(const Eigen::VectorXd& x) const;
    [[nodiscard]] Eigen::VectorXd point_at(const Eigen::VectorXd& z) const;
    [[nodiscard]] Eigen::VectorXd completed(const UnitGenome& point, RandomStream& random) const;
    void add(Sample sample);
    void end_generation();
    void keep_margins();
    void decompose();
    void look_for_end();
    [[nodiscard]] std::size_t window() const noexcept;
    /// Returns C^(−1/2)·y.
    [[nodiscard]] Eigen::VectorXd whitened(const Eigen::VectorXd& y) const;

    Eigen::Index n_;
    int lambda_;
    Eigen::VectorXd weights_;
    double mu_eff_ = 0, c_sigma_ = 0, d_sigma_ = 0, c_c_ = 0, c_1_ = 0, c_mu_ = 0, expected_norm_ = 0;

    Thresholds thresholds_;
    double flat_;

    Eigen::VectorXd mean_;
    Eigen::VectorXd extents_;  ///< A of the margin: a point is mean + σ·A·y
    double sigma_;
    Eigen::MatrixXd covariance_;
    Eigen::MatrixXd axes_;     ///< B: eigenvectors of C
    Eigen::VectorXd lengths_;  ///< D: square roots of the eigenvalues of C
    Eigen::VectorXd path_c_;
    Eigen::VectorXd path_sigma_;

    std::vector<Sample> samples_;  ///< samples of this generation, as mean + σ·y
    std::int64_t generation_ = 0;
    std::int64_t decomposed_ = 0;  ///< generation in which axes_ and lengths_ were computed
    std::vector<double> history_;  ///< the best loss of each generation
    std::vector<double> medians_;  ///< the median loss of each generation
    double best_loss_ = std::numeric_limits<double>::infinity();
    UnitGenome best_point_;
    bool has_ended_ = false;
};

}  // namespace finch::search
