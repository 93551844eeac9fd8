#include "model_results.hpp"

#include <algorithm>

namespace finch::search {

std::vector<char> choices_of(const Space& space) {
    std::vector<char> choices;
    for (const Gene& gene : space.genes) {
        choices.push_back(is_choice(gene) ? 1 : 0);
    }
    return choices;
}

Eigen::MatrixXd columns(const std::vector<UnitGenome>& points, std::size_t genes) {
    Eigen::MatrixXd matrix(static_cast<Eigen::Index>(genes), std::ssize(points));
    for (std::size_t i = 0; i < points.size(); ++i) {
        matrix.col(static_cast<Eigen::Index>(i)) =
            Eigen::Map<const Eigen::VectorXd>(points[i].data(), static_cast<Eigen::Index>(genes));
    }
    return matrix;
}

int Refits::iterations(std::size_t results) {
    if (results < next_) {
        return 0;
    }
    next_ = results + std::max<std::size_t>(3, static_cast<std::size_t>(share_ * static_cast<double>(results)));
    const int iterations = is_first_ ? 40 : 15;
    is_first_ = false;
    return iterations;
}

}  // namespace finch::search
