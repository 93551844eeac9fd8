#pragma once

#include "finch/base/bytes.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <vector>

namespace finch::island {

/// The record of a leader, written before it sends a result.
class Journal {
public:
    virtual ~Journal() = default;
    virtual void write(const Bytes& record) = 0;
    virtual void sync(bool now) = 0;
    /// The first `records` written in this start are in a synced archive.
    virtual void forget(std::uint64_t records) = 0;
};

/// World rank 0's archive of everything.
class Archive {
public:
    virtual ~Archive() = default;
    virtual void event(const search::Event& event) = 0;
    virtual void report(const search::WorkerReport& report) = 0;
    /// Writes and syncs. False if it failed (disk full): the old archive stands, and a later try may succeed.
    virtual bool write(const search::Population& population) = 0;
    /// Individuals whose learning curves the newest archive and its predecessor both hold: memory need not.
    [[nodiscard]] virtual std::vector<search::Id> curves_kept() const { return {}; }
};

}  // namespace finch::island
