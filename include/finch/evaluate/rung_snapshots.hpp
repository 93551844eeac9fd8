#pragma once

#include "finch/search/inheritance.hpp"
#include "finch/store/model_file.hpp"
#include "finch/store/run_directory.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace finch::evaluate {

/// Returns whether `mine`, which has just reached a rung, is among the best `parents` trainings there.
[[nodiscard]] bool is_wanted_at_rung(const search::Individual& mine, const search::Population& population,
                                     std::int64_t parents);
/// Returns the trainings whose snapshots at the rung that `mine` has just reached are not needed any more. Other
/// leaders write snapshots at the same time, so more than one may be too many.
[[nodiscard]] std::vector<search::Id> not_wanted_at_rung(const search::Individual& mine,
                                                         const search::Population& population, std::int64_t parents);

/// Snapshots of trainings at rungs, from which heirs continue (search/inheritance.hpp). A snapshot is complete and
/// synced before any leader is told that its training reached the rung. Each rung keeps the snapshots of its best
/// InheritOptions::parents trainings. An heir copies its parent's snapshot when it starts, and needs it no more.
class RungSnapshots {
public:
    RungSnapshots(store::RunDirectory directory, std::uint64_t run) : directory_(std::move(directory)), run_(run) {}

    /// Writes the snapshot of `file.individual`, which has just reached a rung. Removes the snapshots of the next best
    /// trainings at this rung. Throws ApiError.
    void keep(const store::ModelFile& file, const search::Population& population, std::int64_t parents) const;
    /// Returns whether the parent of `heir` has a snapshot at the rung where `heir` begins.
    [[nodiscard]] bool has_parent_of(const search::Individual& heir) const;
    /// Returns the snapshot of the parent of `heir`, if there is one.
    [[nodiscard]] std::optional<store::ModelFile> parent_of(const search::Individual& heir) const;

private:
    store::RunDirectory directory_;
    std::uint64_t run_;
};

/// World rank 0 only, before any training. Removes the snapshots and the copies of checkpoints at rungs, except those
/// of the best InheritOptions::parents of each rung and island, and those of parents of unfinished heirs.
void remove_unused_rungs(const store::RunDirectory& directory, const search::Population& population,
                         const search::InheritOptions& options);

}  // namespace finch::evaluate
