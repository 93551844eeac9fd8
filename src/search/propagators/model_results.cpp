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

std::size_t fitted_results(std::size_t results, std::size_t first, double share) {
    if (results < first) {
        return 0;
    }
    for (std::size_t due = first;;) {
        const std::size_t next =
            due + std::max<std::size_t>(3, static_cast<std::size_t>(share * static_cast<double>(due)));
        if (next > results) {
            return due;
        }
        due = next;
    }
}

}  // namespace finch::search
