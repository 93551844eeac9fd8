#pragma once

#include "finch/app/verbs.hpp"
#include "finch/base/terminal.hpp"

#include <string>

/// The live view of a run: `finch show RUN --follow`.
namespace finch::app {

/// Prints updates until the run has ended. On a terminal each update replaces the previous one; elsewhere each change
/// adds a line.
[[nodiscard]] int follow(const ShowOptions& options);

/// Returns the text of an update on a terminal: the state, the best loss over time, the rate and the time left, the
/// failures, the best individuals, the current trainings and the workers. Long lines are cut to the terminal's width.
/// The text of an unfinished run also fits the height of the terminal, and ends with how to quit.
/// `now`: Unix seconds.
[[nodiscard]] std::string followed_text(const ReadRun& run, const report::Status& status, const report::Top& top,
                                        const Terminal& terminal, double now);

/// Returns `text` with bold headings, the lines that are not indented, if `terminal` has colours.
[[nodiscard]] std::string with_bold_headings(const std::string& text, const Terminal& terminal);

}  // namespace finch::app
