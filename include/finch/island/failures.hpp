#pragma once

#include "finch/search/population.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace finch::island {

/// The failed evaluations, on world rank 0: which worker pauses, and which worker evaluates failed genes again. Each
/// failure in a row of a worker doubles the pause before its next evaluation: 1, 2, 4 … s, at most 60 s or the mean
/// duration of an evaluation if that is longer. Failures in a row that are usual in this search cause no pause.
class Failures {
public:
    /// `nodes`: distinct nodes of this start. `retries`: most retries per genome. `population`: of the earlier starts.
    Failures(int workers, int nodes, int retries, const search::Population& population);

    /// Counts an individual that ended in this start. Returns a warning, once per node, if its worker fails while
    /// others succeed. `now`: steady seconds.
    std::optional<std::string> ended(const search::Individual& one, const search::Population& population, double now);
    /// Begins a pause of `worker`, which has failed or got a lease.
    void pause(std::int32_t worker, double now);
    void left(std::int32_t worker) { left_ += std::exchange(at(worker).has_left, true) ? 0 : 1; }
    [[nodiscard]] std::size_t workers() const noexcept { return workers_.size(); }

    /// True if `worker` pauses. False if all other workers have left, or if there is no result and all workers fail.
    [[nodiscard]] bool must_wait(std::int32_t worker, double now) const;
    /// Returns the number of evaluations of this start if no start has a result, and most workers ended an evaluation
    /// or have left: the others will probably fail, too. Else returns 0.
    [[nodiscard]] std::int64_t in_vain() const;
    /// Removes and returns the next individual that `worker` must retry. A worker that fails itself, or on whose node
    /// the genes failed, retries them only if there is no other or many wait, and not if they were out of memory.
    [[nodiscard]] std::optional<search::Id> take_retry(std::int32_t worker, const search::Population& population);

private:
    struct Worker {
        std::int64_t failures = 0;  ///< in a row
        double next_start = 0;
        std::string node;        ///< of its last evaluation
        bool has_ended = false;  ///< an evaluation, with any outcome
        bool has_left = false;   ///< starts nothing more
        [[nodiscard]] bool is_sick() const { return failures >= 3; }
    };
    [[nodiscard]] Worker& at(std::int32_t worker) { return workers_.at(static_cast<std::size_t>(worker)); }
    /// Returns the nodes on which the genes of `one` failed; in a run on one node, the workers.
    [[nodiscard]] std::vector<std::string> tried(const search::Individual& one, const search::Population& all) const;
    void retry_if_due(const search::Individual& one, const search::Population& all);

    std::vector<Worker> workers_;
    std::size_t left_ = 0;
    bool is_on_one_node_;
    std::size_t most_retries_;
    std::deque<search::Id> waiting_;  ///< for a retry
    bool has_result_;                 ///< of any start
    std::set<std::string> named_;     ///< nodes or workers that a warning named
    std::int64_t ended_ = 0;
    std::int64_t results_ = 0;  ///< with a duration
    double mean_seconds_ = 1;   ///< of these results
    double past_failed_ = 0;    ///< failures before a success of the same worker
    double past_ended_ = 0;     ///< evaluations up to the last success of each worker
};

}  // namespace finch::island
