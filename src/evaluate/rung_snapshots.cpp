#include "finch/evaluate/rung_snapshots.hpp"

#include "finch/base/copy_folder.hpp"
#include "finch/base/files.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace finch::evaluate {
namespace {

/// Returns the trainings that continued after the rung that `mine` has just reached, best first, with `mine`.
std::vector<const search::Individual*> ranking_with(const search::Individual& mine,
                                                    const search::Population& population) {
    const std::int32_t rung = mine.pruning->rung;
    const auto standing = [rung](const search::Individual* one) {
        return std::pair(one->pruning->losses.at(static_cast<std::size_t>(rung) - 1), one->id);
    };
    auto ranked = search::continued_after(population, population.island_now(mine.island), rung);
    std::erase_if(ranked, [&mine](const search::Individual* one) { return one->id == mine.id; });
    ranked.insert(std::ranges::upper_bound(ranked, standing(&mine), {}, standing), &mine);
    return ranked;
}

}  // namespace

bool is_wanted_at_rung(const search::Individual& mine, const search::Population& population, std::int64_t parents) {
    const auto ranked = ranking_with(mine, population);
    return std::ranges::find(ranked, &mine) - ranked.begin() < parents;
}

std::vector<search::Id> not_wanted_at_rung(const search::Individual& mine, const search::Population& population,
                                           std::int64_t parents) {
    const auto ranked = ranking_with(mine, population);
    const auto end = std::min<std::int64_t>(std::ssize(ranked), 3 * parents);
    std::vector<search::Id> spare;
    for (std::int64_t place = parents; place < end; ++place) {
        spare.push_back(ranked[static_cast<std::size_t>(place)]->id);
    }
    return spare;
}

void RungSnapshots::keep(const store::ModelFile& file, const search::Population& population,
                         std::int64_t parents) const {
    const std::int32_t epoch = file.individual.epochs;
    store::write_model(directory_.after_epoch(file.individual.id, epoch), file, {.predecessor = Predecessor::drop});
    for (const search::Id id : not_wanted_at_rung(file.individual, population, parents)) {
        store::remove_model(directory_.after_epoch(id, epoch));
    }
}

bool RungSnapshots::has_parent_of(const search::Individual& heir) const {
    return is_there(directory_.after_epoch(heir.inherited_from, heir.inherited_epochs));
}

std::optional<store::ModelFile> RungSnapshots::parent_of(const search::Individual& heir) const {
    std::vector<std::string> problems;  // not reported: the heir can train without this snapshot
    auto file = store::read_model(directory_.after_epoch(heir.inherited_from, heir.inherited_epochs), problems,
                                  OnDamage::leave);
    if (!file || file->run != run_ || file->individual.id != heir.inherited_from) {
        return std::nullopt;
    }
    return file;
}

void remove_unused_rungs(const store::RunDirectory& directory, const search::Population& population,
                         const search::InheritOptions& options) {
    std::set<std::filesystem::path> used;
    const auto keep = [&](search::Id id, std::int64_t epoch) {
        used.insert({directory.after_epoch(id, epoch), directory.checkpoint_after_epoch(id, epoch)});
    };
    for (int island = 0; island < population.islands(); ++island) {
        for (std::int32_t rung = 1; rung <= static_cast<std::int32_t>(search::most_rungs); ++rung) {
            auto best = search::continued_after(population, island, rung);
            best.resize(std::min(best.size(), static_cast<std::size_t>(options.parents)));
            for (const search::Individual* one : best) {
                keep(one->id, options.rungs.epoch_of(rung));
            }
        }
    }
    for (const search::Individual* one : population.unfinished()) {
        if (one->is_heir()) {
            keep(one->inherited_from, one->inherited_epochs);
        }
    }
    for (const std::filesystem::path& path : directory.state_files()) {
        std::error_code none;
        if (!store::RunDirectory::is_after_epoch(path) || used.contains(path)) {
            continue;
        }
        if (std::filesystem::is_directory(path, none)) {
            remove_folder(path);
        } else {
            store::remove_model(path);
        }
    }
}

}  // namespace finch::evaluate
