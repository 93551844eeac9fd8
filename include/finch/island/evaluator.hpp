#pragma once

#include "finch/search/individual.hpp"

#include <span>
#include <vector>

namespace finch::island {

/// Seconds before a slot is expected to be free at which its worker asks for a lease.
inline constexpr double lease_ahead_seconds = 0.05;

/// Evaluates a worker's individuals. The leader calls these functions; an evaluator of several ranks turns each call
/// into an Order that the followers obey.
class Evaluator {
public:
    virtual ~Evaluator() = default;

    [[nodiscard]] virtual bool has_free_slot() const = 0;
    [[nodiscard]] virtual bool idle() const = 0;  ///< nothing runs
    /// Whether a network of this genome can exist at all; others are bred again.
    [[nodiscard]] virtual bool can_exist(const search::Genome& genome) const = 0;
    /// Begins an individual, or resumes it if the evaluator finds its snapshot. Never throws for what is the
    /// individual's own fault: that comes back from advance() as its outcome.
    virtual void start(search::Individual individual) = 0;
    /// Does a few milliseconds of work on every slot and returns those that ended, with their outcome. Throws
    /// StorageError if files fail, for no fault of an individual: the worker leaves, to be resumed.
    [[nodiscard]] virtual std::vector<search::Individual> advance() = 0;
    /// Unfinished individuals that, since the last call, reached a rung or trained an epoch that a budget counts, as
    /// they are now.
    [[nodiscard]] virtual std::vector<search::Individual> take_progress() { return {}; }
    /// Called once the record of `individual` is written: what was kept of its training can go.
    virtual void finished(const search::Individual& individual) = 0;
    /// Whether a slot is free now or will be within some lease_ahead_seconds: time to ask for a lease.
    [[nodiscard]] virtual bool wants_soon() const = 0;
    /// Saves everything that runs, so that a later start can resume it. Returns those that were saved, with the
    /// progress that their snapshot holds.
    [[nodiscard]] virtual std::vector<search::Individual> checkpoint() = 0;
    /// The same before the worker leaves: nothing runs after it.
    [[nodiscard]] virtual std::vector<search::Individual> stop() { return checkpoint(); }
    /// Seconds that stop() may take now, if that is long.
    [[nodiscard]] virtual double stop_seconds() const { return 0; }
    /// Seconds that the last checkpoint took; 0 before the first.
    [[nodiscard]] virtual double checkpoint_seconds() const = 0;
    /// Called often, so that followers know that their leader lives and it hears of what reached them alone. `seconds`,
    /// if not 0: something begins now that takes the leader so long at most.
    virtual void keep_alive(double seconds) { static_cast<void>(seconds); }
    /// Whether the next advance() may take unusually long, as a training's first steps do.
    [[nodiscard]] virtual bool next_may_be_long() const { return false; }
    /// Ends the followers' part. Once, at the very end.
    virtual void dismiss() = 0;
};

}  // namespace finch::island
