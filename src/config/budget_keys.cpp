#include "finch/config/config.hpp"

#include "bind.hpp"
#include "domains.hpp"

/// The keys of search.budget.
namespace finch::config {
namespace {

void check_budget(const island::Budget& budget, const Tree& written) {
    if (!budget.evaluations && !budget.generations && !budget.epochs && !budget.hours && !budget.node_hours &&
        !budget.target_loss) {
        fail(written, "search.budget",
             "never ends; accepted: at least one of evaluations, generations, epochs, hours, node_hours, target_loss "
             "with a value");
    }
}

}  // namespace

Domain budget_section() {
    using island::Budget;
    return {Section{
        .keys = {key("evaluations", &Budget::evaluations, or_null(whole(1, 4000 * million)),
                     "exact number of evaluations of the whole run, over all starts"),
                 key("generations", &Budget::generations, or_null(whole(1, 4000 * million)),
                     "number of evaluations of each worker"),
                 key("epochs", &Budget::epochs, or_null(whole(1, 1000000 * million)),
                     "number of epochs that all individuals train together, over all starts; unfinished trainings are "
                     "then saved"),
                 key("hours", &Budget::hours, or_null(above(0, million)), "hours of wall time, summed over all starts"),
                 key("node_hours", &Budget::node_hours, or_null(above(0, million)),
                     "number of distinct nodes times hours of wall time, summed over all starts"),
                 key("target_loss", &Budget::target_loss, or_null(real(-1e300, 1e300)),
                     "the search ends once the best loss is this value or smaller")},
        .check = check_of<Budget>(check_budget)}};
}

}  // namespace finch::config
