#pragma once

#include "finch/island/journal.hpp"
#include "finch/island/leases.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace finch::island {

/// World rank 0's second task: leases evaluations to all leaders and archives what the run found. It sends nothing
/// itself: its worker does.
class Archivist {
public:
    static constexpr int tries = 3;  ///< that an archive may fail to be written, one after the other

    /// Writes the archive every `seconds`; `steady_seconds` is the clock.
    Archivist(Archive& archive, LeaseServer leases, int workers, double seconds,
              std::function<double()> steady_seconds);

    /// Takes a leader's message. answers() has what it asks for.
    void receive(const search::LeaseMessage& message);
    /// The answers to the requests that have none yet, but for those that wait, each to its `worker`.
    [[nodiscard]] std::vector<search::LeaseMessage> answers();
    [[nodiscard]] LeaseServer& leases() noexcept { return leases_; }
    [[nodiscard]] const LeaseServer& leases() const noexcept { return leases_; }

    /// Counts a record that the worker `from` journaled, and keeps what only the archive holds.
    void merge(const search::Record& record, int from);

    /// When the archive is to be written next, in steady seconds.
    [[nodiscard]] double next_archive() const;
    [[nodiscard]] bool archive_is_due() const { return steady_seconds_() >= next_archive(); }
    /// Writes the archive. Returns by worker how many of its records are in it and in its predecessor: should the
    /// newest file be damaged, nothing is lost. Empty if it could not be written.
    [[nodiscard]] std::vector<std::uint64_t> write_archive(search::Population& population);
    /// Seconds of the last write_archive(); 0 before the first.
    [[nodiscard]] double archive_seconds() const noexcept { return cost_; }
    /// Failures of write_archive() since the last success.
    [[nodiscard]] int failures() const noexcept { return failures_; }

private:
    Archive& archive_;
    LeaseServer leases_;
    double seconds_;
    std::function<double()> steady_seconds_;
    std::vector<search::LeaseMessage> requests_;  ///< not answered yet
    std::vector<std::uint64_t> merged_;           ///< durable records, by worker
    std::vector<std::uint64_t> in_last_archive_;  ///< of them, those that the newest archive holds
    double last_archive_;                         ///< steady
    double cost_ = 0;                             ///< seconds
    int failures_ = 0;
};

}  // namespace finch::island
