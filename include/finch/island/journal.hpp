#pragma once

#include "finch/base/bytes.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <vector>

namespace finch::island {

/// The journal of a leader. The leader writes each record here before it sends the record.
class Journal {
public:
    virtual ~Journal() = default;
    virtual void write(const Bytes& record) = 0;
    virtual void sync(bool now) = 0;
    /// Drops the first `records` records of this start, because a synced archive holds them.
    virtual void forget(std::uint64_t records) = 0;
};

/// World rank 0's archive of all individuals, events and worker reports.
class Archive {
public:
    virtual ~Archive() = default;
    virtual void event(const search::Event& event) = 0;
    virtual void report(const search::WorkerReport& report) = 0;
    /// Writes and syncs the archive. Returns false if the write or the sync failed (disk full): the old archive stays,
    /// and a later try may succeed.
    virtual bool write(const search::Population& population) = 0;
    /// Returns the individuals with learning curves in both the newest archive and its predecessor. The population can
    /// drop these curves.
    [[nodiscard]] virtual std::vector<search::Id> curves_kept() const { return {}; }
};

}  // namespace finch::island
