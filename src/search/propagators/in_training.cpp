#include "in_training.hpp"

namespace finch::search {

std::vector<const Individual*> in_training_on(const Population& population, int island) {
    std::vector<const Individual*> found;
    for (const Individual* individual : population.unfinished()) {
        if (population.island_now(individual->island) == island && !individual->is_repeat()) {
            found.push_back(individual);
        }
    }
    return found;
}

}  // namespace finch::search
