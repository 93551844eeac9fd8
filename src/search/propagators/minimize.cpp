#include "minimize.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <nlopt.h>
#include <type_traits>

namespace finch::search {
namespace {

constexpr unsigned remembered_steps = 8;
constexpr double least_gain = 1e-7;        ///< smallest relative gain for another iteration
constexpr double in_place_of_none = 1e30;  ///< replaces values that are not finite; NLopt's line search can handle it

struct Search {
    const Objective& objective;
    Eigen::VectorXd best;
    double least = std::numeric_limits<double>::infinity();
};

double value_at(unsigned count, const double* point, double* gradient, void* data) {
    auto& search = *static_cast<Search*>(data);
    const Eigen::VectorXd x = Eigen::Map<const Eigen::VectorXd>(point, count);
    Eigen::VectorXd slope(count);
    const double value = search.objective(x, slope);
    if (value < search.least) {
        search.least = value;
        search.best = x;
    }
    if (gradient != nullptr) {
        Eigen::Map<Eigen::VectorXd>(gradient, count) = slope;
    }
    return std::isfinite(value) ? value : in_place_of_none;
}

}  // namespace

double minimize(const Objective& objective, const Box& box, int most_evaluations, Eigen::VectorXd& x) {
    const std::unique_ptr<std::remove_pointer_t<nlopt_opt>, decltype(&nlopt_destroy)> method(
        nlopt_create(NLOPT_LD_LBFGS, static_cast<unsigned>(x.size())), &nlopt_destroy);
    x = x.cwiseMax(box.low).cwiseMin(box.high);
    Search search{objective, x};
    nlopt_set_lower_bounds(method.get(), box.low.data());
    nlopt_set_upper_bounds(method.get(), box.high.data());
    nlopt_set_vector_storage(method.get(), remembered_steps);
    nlopt_set_maxeval(method.get(), most_evaluations);
    nlopt_set_ftol_rel(method.get(), least_gain);
    nlopt_set_min_objective(method.get(), value_at, &search);
    double last = 0;
    nlopt_optimize(method.get(), x.data(), &last);  // regardless of its result, `search` has the best point
    x = search.best;
    return search.least;
}

}  // namespace finch::search
