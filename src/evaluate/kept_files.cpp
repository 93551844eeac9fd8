#include "finch/evaluate/kept_files.hpp"

#include "finch/base/copy_folder.hpp"
#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/replace.hpp"
#include "finch/config/command.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <vector>

namespace finch::evaluate {
namespace {

namespace fs = std::filesystem;

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

/// Returns the first line of `reports`. Individuals of two runs can have the same ids.
std::string heading(std::uint64_t run) {
    return fmt::format("run {:016x}", run);
}

/// Returns the individual that owns the folder or output file `path`: RESTART.WORKER/SEQUENCE[.WHAT]. Returns nothing
/// for other paths.
std::optional<search::Id> id_of_evaluation(const fs::path& path) {
    const std::string name = path.filename().string();
    try {
        return search::parse_id(path.parent_path().filename().string() + "." + name.substr(0, name.find('.')));
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace

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

search::Id trained_parent(const search::Individual& individual, const search::Population& population) {
    if (individual.is_repeat()) {
        return {};
    }
    const search::Individual* parent = population.find(individual.parents.front());
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
    for (const fs::path& path : directory.state_files()) {
        const auto id = store::RunDirectory::id_of_weights(path);
        if (id && !used.contains(*id)) {
            store::remove_model(path);
        }
    }
}

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
    std::set<fs::path> used;
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
    for (const fs::path& path : directory.state_files()) {
        std::error_code none;
        if (!store::RunDirectory::is_after_epoch(path) || used.contains(path)) {
            continue;
        }
        if (fs::is_directory(path, none)) {
            remove_folder(path);
        } else {
            store::remove_model(path);
        }
    }
}

void RungCheckpoints::keep(const search::Individual& individual, const fs::path& checkpoint, const ReportedCurve& curve,
                           const search::Population& population, std::int64_t parents) const {
    const std::string reports = heading(run_) + "\n" + curve.text();
    replace_folder(directory_.checkpoint_after_epoch(individual.id, individual.epochs), [&](const fs::path& beside) {
        if (::mkdir(beside.c_str(), 0777) != 0) {
            throw_storage("cannot make the folder " + beside.string());
        }
        copy_folder(checkpoint, beside / config::parent_checkpoint);
        std::error_code none;
        if (fs::is_empty(beside / config::parent_checkpoint, none)) {
            throw StorageError(fmt::format("the folder {} is empty", checkpoint.string()));
        }
        replace_file(beside / "reports", {std::as_bytes(std::span(reports))}, {Predecessor::drop});
    });
    for (const search::Id id : not_wanted_at_rung(individual, population, parents)) {
        remove_folder(directory_.checkpoint_after_epoch(id, individual.epochs));
    }
}

bool RungCheckpoints::has_parent_of(const search::Individual& heir) const {
    std::ifstream file(of_parent(heir) / "reports", std::ios::binary);
    std::string line;
    return std::getline(file, line) && line == heading(run_);
}

void RungCheckpoints::copy_parent(const search::Individual& heir, const fs::path& own) const {
    const auto require_parent = [&] {
        if (!has_parent_of(heir)) {
            throw FileError(fmt::format("the copy of the checkpoint of its parent {} after epoch {} is missing",
                                        to_text(heir.inherited_from), heir.inherited_epochs));
        }
    };
    require_parent();
    std::error_code ignored;
    fs::create_directories(own.parent_path(), ignored);
    try {
        replace_folder(own, [&](const fs::path& beside) { copy_folder(of_parent(heir), beside); });
    } catch (const StorageError&) {
        require_parent();  // another leader may have removed it during the copy
        throw;
    }
}

void RungCheckpoints::begin(const search::Individual& heir, ReportedCurve& curve) const {
    const fs::path own = directory_.evaluation_file(heir.id, std::string(config::parent_suffix));
    const bool has_reported = is_there(directory_.evaluation_file(heir.id, "reports"));
    if (!is_there(own) || (!has_reported && has_parent_of(heir))) {
        copy_parent(heir, own);
    }
    curve.inherit(own / "reports");
    if (curve.epochs().empty() || curve.epochs().back().epoch != heir.inherited_epochs) {
        throw FileError(
            fmt::format("{} has other epochs than 1 to {}", (own / "reports").string(), heir.inherited_epochs));
    }
}

bool keeps_evaluation(config::Keep keep, const search::Individual& individual, const search::Individual* best) {
    switch (keep) {
        case config::Keep::none:
            return false;
        case config::Keep::failed:
            return !individual.ranks_by_loss();
        case config::Keep::best:
            return individual.ranks_by_loss() && (best == nullptr || !search::better(*best, individual));
        case config::Keep::all:
            return true;
    }
    return true;
}

void remove_spare_evaluations(const store::RunDirectory& directory, const search::Population& population,
                              config::Keep keep) {
    std::error_code ignored;
    for (const fs::path& worker : list_folder(directory.evaluations())) {
        if (!fs::is_directory(fs::symlink_status(worker, ignored))) {  // a program's own file
            continue;
        }
        for (const fs::path& path : list_folder(worker)) {
            const auto id = id_of_evaluation(path);
            const search::Individual* const individual = id ? population.find(*id) : nullptr;
            if (individual != nullptr && individual->finished_training() &&
                !keeps_evaluation(keep, *individual, population.best_trained())) {
                fs::remove_all(path, ignored);
            }
        }
        fs::remove(worker, ignored);  // only if it is empty
    }
}

}  // namespace finch::evaluate
