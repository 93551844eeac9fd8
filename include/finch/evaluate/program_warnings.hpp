#pragma once

#include "finch/search/individual.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace finch::evaluate {

/// Warns once for each reason why a search waits or cannot prune. All times in steady seconds. One per worker, of its
/// leader.
class ProgramWarnings {
public:
    explicit ProgramWarnings(bool may_prune);

    /// Some ranks of a program have ended, others run.
    void ranks_wait(search::Id id, double since);
    /// A persistent program has said nothing since then.
    void is_silent(search::Id id, double since);
    /// A program has said 'finch done' of another individual, in `text`.
    void is_done_with_other(search::Id id, const std::string& text);
    /// A program has ended with exit code 0, after `epochs` of `all`.
    void has_ended(search::Id id, std::int64_t epochs, std::int64_t all);
    /// An interactive program has ended, and has not asked whether to stop.
    void has_not_asked(search::Id id);
    /// A program has ended, after its `first` report came; 0: none came in this start.
    void has_reported(search::Id id, std::size_t epochs, double began, double first);

private:
    bool may_prune_;
    double seconds_;  ///< of waiting before it is said
    bool has_warned_of_ranks_ = false;
    bool has_warned_of_silence_ = false;
    bool has_warned_of_late_reports_ = false;
    bool has_warned_of_other_ = false;
    bool has_warned_of_end_ = false;
    bool has_warned_of_question_ = false;
};

}  // namespace finch::evaluate
