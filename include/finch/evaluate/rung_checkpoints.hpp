#pragma once

#include "finch/evaluate/reported_curve.hpp"
#include "finch/search/inheritance.hpp"
#include "finch/store/run_directory.hpp"

#include <cstdint>
#include <filesystem>
#include <utility>

namespace finch::evaluate {

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

}  // namespace finch::evaluate
