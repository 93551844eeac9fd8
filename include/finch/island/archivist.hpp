#pragma once

#include "finch/island/failures.hpp"
#include "finch/island/journal.hpp"
#include "finch/island/leases.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace finch::island {

/// A second task of world rank 0: it leases evaluations to all leaders and archives the results of the run. The
/// Archivist sends no messages; world rank 0's Worker sends them.
class Archivist {
public:
    static constexpr int tries = 3;  ///< failed writes of the archive in a row after which the run stops

    /// Writes the archive every `seconds`; `steady_seconds` is the clock.
    Archivist(Archive& archive, LeaseServer leases, Failures failures, double seconds,
              std::function<double()> steady_seconds);

    /// Receives a leader's lease message. answers() returns the answer to a request.
    void receive(const search::LeaseMessage& message);
    /// Returns the answers to all open requests; each answer names its `worker`. Requests that must wait for the final
    /// choice stay unanswered, and those of pausing workers while leases are left. A grant may name one to retry.
    [[nodiscard]] std::vector<search::LeaseMessage> answers(const search::Population& population);
    [[nodiscard]] LeaseServer& leases() noexcept { return leases_; }
    [[nodiscard]] const LeaseServer& leases() const noexcept { return leases_; }
    [[nodiscard]] Failures& failed() noexcept { return failed_; }
    [[nodiscard]] const Failures& failed() const noexcept { return failed_; }

    /// Counts a record that the worker `from` journaled. Passes events and worker reports to the archive.
    void merge(const search::Record& record, int from);

    /// Returns when the archive must be written next, in steady seconds.
    [[nodiscard]] double next_archive() const;
    [[nodiscard]] bool archive_is_due() const { return steady_seconds_() >= next_archive(); }
    /// Writes the archive. Returns, by worker, how many of its records are in both the archive and its predecessor: if
    /// the newest file is damaged, the predecessor still has them. Returns an empty vector if the write failed.
    [[nodiscard]] std::vector<std::uint64_t> write_archive(search::Population& population);
    /// Returns the seconds that the last write_archive() took; 0 before the first.
    [[nodiscard]] double archive_seconds() const noexcept { return cost_; }
    /// Returns the failures of write_archive() since the last success.
    [[nodiscard]] int failures() const noexcept { return failures_; }

private:
    Archive& archive_;
    LeaseServer leases_;
    Failures failed_;
    double seconds_;
    std::function<double()> steady_seconds_;
    std::vector<search::LeaseMessage> requests_;  ///< not answered yet
    std::vector<std::uint64_t> merged_;           ///< durable records, by worker
    std::vector<std::uint64_t> in_last_archive_;  ///< by worker: records in the newest archive
    double last_archive_;                         ///< steady seconds
    double cost_ = 0;                             ///< seconds that the last archive took
    int failures_ = 0;
};

}  // namespace finch::island
