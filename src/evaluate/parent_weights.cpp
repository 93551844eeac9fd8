#include "finch/evaluate/parent_weights.hpp"

#include <algorithm>
#include <set>

namespace finch::evaluate {

void ParentWeights::keep(const store::ModelFile& file) {
    const search::Standing mine = search::standing(file.individual);
    const auto place = std::find_if(kept_.begin(), kept_.end(),
                                    [&mine](const search::Standing& other) { return search::better(mine, other); });
    if (!file.individual.is_complete() || place - kept_.begin() >= static_cast<std::ptrdiff_t>(most)) {
        return;
    }
    store::write_model(directory_.weights(mine.id), file);
    kept_.insert(place, mine);
    if (kept_.size() > most) {
        store::remove_model(directory_.weights(kept_.back().id));
        kept_.pop_back();
    }
}

std::optional<NamedArrays> ParentWeights::find(search::Id parent) const {
    std::vector<std::string> problems;  // not reported: the child can train without these weights
    auto file = store::read_model(directory_.weights(parent), problems, OnDamage::leave);
    if (!file || file->run != run_ || file->individual.id != parent) {
        return std::nullopt;
    }
    return std::move(file->arrays);
}

search::Id trained_parent(const search::Individual& individual, const search::Population* population) {
    if (individual.is_repeat()) {
        return {};
    }
    const search::Individual* parent = population != nullptr ? population->find(individual.parents.front()) : nullptr;
    if (parent == nullptr || !parent->is_reused()) {
        return individual.parents.front();
    }
    return parent->is_of_another_run() ? search::Id{} : parent->reused_from;
}

void remove_unused_weights(const store::RunDirectory& directory, const search::Population& population) {
    std::set<search::Id> used;
    for (int island = 0; island < population.islands(); ++island) {
        for (const search::Individual* individual : population.best(island, ParentWeights::most)) {
            used.insert(individual->id);
        }
    }
    for (const std::filesystem::path& path : directory.state_files()) {
        const auto id = store::RunDirectory::id_of_weights(path);
        if (id && !used.contains(*id)) {
            store::remove_model(path);
        }
    }
}

}  // namespace finch::evaluate
