#pragma once

#include "finch/search/population.hpp"

#include <span>
#include <vector>

namespace finch::island {

/// The lead time in seconds: a worker asks for a lease this long before it expects a slot to become free.
inline constexpr double lease_ahead_seconds = 0.05;

/// The interface through which a leader evaluates its worker's individuals. Only the leader calls these functions. An
/// evaluator with several ranks turns each call into an Order that the followers obey. `population`: the leader's
/// population at the call, with which pruning and the choice of files to keep compare.
class Evaluator {
public:
    virtual ~Evaluator() = default;

    [[nodiscard]] virtual bool has_free_slot() const = 0;
    [[nodiscard]] virtual bool idle() const = 0;  ///< nothing runs
    /// True if a network with this genome can exist and keeps the limits on its parameters. If not, the worker breeds
    /// another genome.
    [[nodiscard]] virtual bool can_exist(const search::Genome& genome) const = 0;
    /// True if the parent of `heir` has a snapshot, at the rung where `heir` begins, that fits the genome of `heir`.
    [[nodiscard]] virtual bool can_continue(const search::Individual& /*heir*/,
                                            const search::Population& /*population*/) const {
        return false;
    }
    /// Starts the evaluation of an individual. Resumes the individual if the evaluator finds its snapshot. Never throws
    /// for a fault of the individual: advance() returns this fault as the outcome. Throws StorageError like advance().
    virtual void start(search::Individual individual, const search::Population& population) = 0;
    /// Does a few milliseconds of work on every slot. Returns the individuals that ended, with their outcomes. Throws
    /// StorageError if files fail and no individual is at fault: the worker then leaves, and a later start resumes its
    /// individuals.
    [[nodiscard]] virtual std::vector<search::Individual> advance(const search::Population& population) = 0;
    /// Returns the current state of unfinished individuals that made progress since the last call: they reached a rung,
    /// or trained an epoch that a budget counts.
    [[nodiscard]] virtual std::vector<search::Individual> take_progress() { return {}; }
    /// Returns the running evaluations of this worker, with the epochs that they have reached.
    [[nodiscard]] virtual std::vector<const search::Individual*> in_progress() const { return {}; }
    /// Deletes files of `individual` that are not needed any more. Called once the record of `individual` is written.
    virtual void finished(const search::Individual& individual, const search::Population& population) = 0;
    /// True if a slot is free now or will be free within about lease_ahead_seconds. The worker then asks for a lease.
    [[nodiscard]] virtual bool wants_soon() const = 0;
    /// Saves all running evaluations so that a later start can resume them. Returns the saved individuals, with the
    /// progress that their snapshots hold.
    [[nodiscard]] virtual std::vector<search::Individual> checkpoint() = 0;
    /// Saves all running evaluations before the worker leaves. No evaluation runs afterwards.
    [[nodiscard]] virtual std::vector<search::Individual> stop() { return checkpoint(); }
    /// Returns the seconds that stop() may take now; 0 if stop() is short.
    [[nodiscard]] virtual double stop_seconds() const { return 0; }
    /// Returns the seconds that the last checkpoint took; 0 before the first.
    [[nodiscard]] virtual double checkpoint_seconds() const = 0;
    /// Shows the followers that the leader is alive, and tells the leader about signals that only followers received.
    /// Called often. `seconds`, if not 0: the leader begins an operation that takes at most this long.
    virtual void keep_alive(double seconds) { static_cast<void>(seconds); }
    /// True if the next advance() may take unusually long, as the first steps of a training do.
    [[nodiscard]] virtual bool next_may_be_long() const { return false; }
    /// Dismisses the followers. dismiss() is called once, after all other functions.
    virtual void dismiss() = 0;
};

}  // namespace finch::island
