#pragma once

#include "finch/base/words.hpp"

#include <functional>
#include <string>

namespace finch {

/// What standard output can show.
struct Terminal {
    bool can_rewrite = false;  ///< lines can be rewritten in place
    bool has_colours = false;
    bool has_unicode = false;  ///< the locale is UTF-8
    int columns = 80;
    int rows = 24;
};

/// Returns the properties of standard output, from the environment `variable` (an empty text: not set). `columns`: its
/// width; 0: it is not a terminal. NO_COLOR switches colours off, FORCE_COLOR switches them on
/// (https://no-color.org, https://force-color.org); NO_COLOR wins.
[[nodiscard]] Terminal terminal_of(int columns, const std::function<std::string(const char*)>& variable);

/// The standard output of this process. Open MPI's mpirun gives every rank a pseudo-terminal and forwards the output,
/// so under mpirun this is the standard output of mpirun. mpirun of Open MPI 5 forwards only complete lines, so no line
/// can be rewritten. The size is measured again at each call.
[[nodiscard]] Terminal terminal();

/// Returns how a cut text ends on `terminal`.
[[nodiscard]] Ellipsis ellipsis_of(const Terminal& terminal);

/// Returns `text` in bold if `terminal` has colours.
[[nodiscard]] std::string bold(const std::string& text, const Terminal& terminal);

}  // namespace finch
