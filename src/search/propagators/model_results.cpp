#include "model_results.hpp"

#include <algorithm>

namespace finch::search {

Eigen::VectorXd numbers_of(const Space& space) {
    Eigen::VectorXd numbers(std::ssize(space.genes));
    std::transform(space.genes.begin(), space.genes.end(), numbers.begin(),
                   [](const Gene& gene) { return is_choice(gene) ? 0 : 1; });
    return numbers;
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
