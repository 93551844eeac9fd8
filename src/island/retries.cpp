#include "finch/island/retries.hpp"

#include <set>
#include <utility>

namespace finch::island {

bool Retries::is_due(const search::Individual& individual, const search::Population& population) const {
    const bool was_evaluated = individual.started > 0 && !individual.is_reused() && !individual.is_repeat();
    if (most_ == 0 || individual.outcome != search::Outcome::failed || !was_evaluated) {
        return false;
    }
    int before = 0;
    for (search::Id id = individual.retry_of; before < most_ && id != search::Id{}; ++before) {
        const search::Individual* const earlier = population.find(id);
        id = earlier != nullptr ? earlier->retry_of : search::Id{};
    }
    return before < most_;
}

void Retries::recall(const search::Population& population, int island, std::size_t place, std::size_t count) {
    if (most_ == 0) {
        return;
    }
    std::set<search::Id> tried;
    for (const auto& [id, individual] : population.individuals()) {
        tried.insert(individual.retry_of);
    }
    std::size_t turn = 0;
    for (const auto& [id, individual] : population.individuals()) {
        const bool is_of_island = population.island_now(individual.island) == island;
        if (is_of_island && !tried.contains(id) && is_due(individual, population) && turn++ % count == place) {
            waiting_.push_back(id);
        }
    }
}

void Retries::finished(const search::Individual& individual, const search::Population& population) {
    if (is_due(individual, population)) {
        waiting_.push_back(individual.id);
    }
}

std::optional<search::Id> Retries::take() {
    if (waiting_.empty()) {
        return std::nullopt;
    }
    const search::Id first = waiting_.front();
    waiting_.pop_front();
    return first;
}

search::Individual as_retry_of(search::Individual individual, const search::Individual& failed) {
    individual.genome = failed.genome;
    individual.parents = failed.parents;
    individual.bred_by = failed.bred_by;
    individual.breeding = failed.breeding;
    individual.retry_of = failed.id;
    return individual;
}

}  // namespace finch::island
