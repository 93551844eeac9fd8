#pragma once

#include "finch/config/command.hpp"
#include "finch/evaluate/reported_curve.hpp"
#include "finch/search/individual.hpp"
#include "finch/search/inheritance.hpp"
#include "finch/search/population.hpp"
#include "finch/store/model_file.hpp"
#include "finch/store/run_directory.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

/// Files of evaluations that stay after their ends: what children and heirs begin with, and the folders of programs.
namespace finch::evaluate {

/// The weights of the best trainings, kept on disk for their children. A leader keeps weights that it trained in this
/// start. Every leader reads the weights of all leaders.
class ParentWeights {
public:
    static constexpr std::size_t most = 8;  ///< sets of weights that one leader keeps

    ParentWeights(store::RunDirectory directory, std::uint64_t run) : directory_(std::move(directory)), run_(run) {}

    /// Writes the weights of a complete training, unless `most` better ones are kept. If there are more than `most`
    /// sets of weights afterwards, removes the worst set. Throws ApiError.
    void keep(const store::ModelFile& file);
    /// Returns the weights of `parent` if they are kept.
    [[nodiscard]] std::optional<NamedArrays> find(search::Id parent) const;

private:
    store::RunDirectory directory_;
    std::uint64_t run_;
    std::vector<search::Standing> kept_;  ///< best first
};

/// Returns the individual that provides the initial weights of `individual`: its first parent. If the first parent
/// reuses a result of this run, returns the individual that was trained for it. If the first parent reuses a result of
/// another run, returns id 0. Returns id 0 for a repeat, which begins with random weights.
[[nodiscard]] search::Id trained_parent(const search::Individual& individual, const search::Population& population);

/// World rank 0 only, before any training. Removes weights that earlier starts kept, except for the best
/// ParentWeights::most individuals of each island.
void remove_unused_weights(const store::RunDirectory& directory, const search::Population& population);

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

/// Copies of programs' checkpoints at rungs, from which heirs continue. They are kept by the same rules as the
/// snapshots of networks (rung_snapshots.hpp). A copy is the folder state/epoch-9-ID, with the file `reports` (the
/// learning curve up to the rung) and the folder `checkpoint`. An heir gets a copy of this folder,
/// evaluations/RESTART.WORKER/SEQUENCE.parent, and needs the folder in state/ no more.
class RungCheckpoints {
public:
    RungCheckpoints(store::RunDirectory directory, std::uint64_t run) : directory_(std::move(directory)), run_(run) {}

    /// Copies the folder `checkpoint` of `individual`, which has just reached a rung, and writes its `curve`. Removes
    /// the copies of the next best trainings at this rung. Throws ApiError.
    void keep(const search::Individual& individual, const std::filesystem::path& checkpoint, const ReportedCurve& curve,
              const search::Population& population, std::int64_t parents) const;
    /// Returns whether the parent of `heir` has a copy at the rung where `heir` begins.
    [[nodiscard]] bool has_parent_of(const search::Individual& heir) const;
    /// Gives `heir` its own copy, and puts the epochs of its ancestors into `curve`, which is empty. Keeps the copy of
    /// an earlier start if the heir has reported an epoch, or if its parent has no copy any more. Throws FileError if
    /// no complete copy exists, and StorageError if it cannot be copied.
    void begin(const search::Individual& heir, ReportedCurve& curve) const;

private:
    void copy_parent(const search::Individual& heir, const std::filesystem::path& own) const;
    [[nodiscard]] std::filesystem::path of_parent(const search::Individual& heir) const {
        return directory_.checkpoint_after_epoch(heir.inherited_from, heir.inherited_epochs);
    }

    store::RunDirectory directory_;
    std::uint64_t run_;
};

/// True if the folder and the output of a finished individual are kept. `best`: the best individual; null if there is
/// none.
[[nodiscard]] bool keeps_evaluation(config::Keep keep, const search::Individual& individual,
                                    const search::Individual* best);

/// World rank 0 only, after all evaluations. Removes the folders and outputs of all finished individuals that `keep`
/// does not keep. These files are left over from killed starts, or belong to individuals that were only the best of
/// their worker.
void remove_spare_evaluations(const store::RunDirectory& directory, const search::Population& population,
                              config::Keep keep);

}  // namespace finch::evaluate
