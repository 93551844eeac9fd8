#pragma once

#include "coordinates.hpp"
#include "unit_genome.hpp"

#include <Eigen/Dense>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace finch::search {

struct CmaEsSettings {
    int samples = 0;             ///< a generation, at least 4; 0: 4 + 3 ln n
    Thresholds thresholds = {};  ///< of coordinates as in coordinates.hpp; none: those of the unit cube
    double flat = 1e-10;         ///< a difference of losses that is none
};

/// One start of CMA-ES with negative weights (Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772v2, of
/// which names and constants are) on the unit cube. Results may come in any order and from older distributions: what
/// lies further out than the present one would put it counts as an injected solution and is pulled in (Hansen,
/// "Injecting external solutions", arXiv:1110.4181). Where values are apart, a margin keeps the next ones in reach
/// (coordinates.hpp).
class CmaEs {
public:
    CmaEs(const UnitGenome& mean, double sigma, CmaEsSettings settings = {});

    /// Drawn anew up to four times where a real coordinate lies beyond its bounds, then mirrored in.
    [[nodiscard]] UnitGenome sample(RandomStream& random) const;
    void take(const UnitGenome& point, double loss);
    /// The same with thresholds. Where values are apart, a point does not say where within its value a sample lay; a
    /// NaN says nothing. That makes no difference to the loss, so it is drawn from the present distribution, given the
    /// other coordinates (Gibbs sampling).
    void take(const UnitGenome& point, double loss, RandomStream& random);

    /// Stopping criteria: steps or losses of the last generations too small, or axes too different.
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
    /// Whether the last two windows of generations gained less than a quarter of what is missing to `target`.
    [[nodiscard]] bool is_hopeless(double target) const;
    /// Neither the best nor the median losses of generations have become better of late (the criterion Stagnation of
    /// Hansen, "Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed", 2009).
    [[nodiscard]] bool has_stagnated() const;

    [[nodiscard]] double best_loss() const noexcept { return best_loss_; }
    [[nodiscard]] const UnitGenome& best_point() const noexcept { return best_point_; }
    [[nodiscard]] std::int64_t generations() const noexcept { return generation_; }
    /// Whether the last result completed a generation.
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
    [[nodiscard]] Eigen::VectorXd normal_sample(RandomStream& random) const;
    [[nodiscard]] Eigen::VectorXd completed(const UnitGenome& point, RandomStream& random) const;
    void add(Sample sample);
    void end_generation();
    void keep_margins();
    void decompose();
    void look_for_end();
    [[nodiscard]] std::size_t window() const noexcept;
    /// C^(−1/2)·y.
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
    Eigen::VectorXd lengths_;  ///< D: square roots of its eigenvalues
    Eigen::VectorXd path_c_;
    Eigen::VectorXd path_sigma_;

    std::vector<Sample> samples_;  ///< of this generation, as mean + σ·y
    std::int64_t generation_ = 0;
    std::int64_t decomposed_ = 0;  ///< the generation that axes_ and lengths_ are of
    std::vector<double> history_;  ///< the best loss of each generation
    std::vector<double> medians_;  ///< the median of each
    double best_loss_ = std::numeric_limits<double>::infinity();
    UnitGenome best_point_;
    bool has_ended_ = false;
};

}  // namespace finch::search
