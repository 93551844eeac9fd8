#include "finch/evaluate/kept_evaluations.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"

#include <optional>
#include <string>
#include <system_error>

namespace finch::evaluate {
namespace {

namespace fs = std::filesystem;

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
