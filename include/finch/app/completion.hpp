#pragma once

#include <string>

namespace CLI {
class App;
}

namespace finch::app {

/// What bash's completion (tools/packaging/completion.bash) knows: the variable `_finch_command_line` with a line
/// "VERB|NAME|TYPE" for each option, and "VERB||TYPE" for each argument in its order. TYPE is what the help calls it
/// (RUN, FILE, …), words as {this,that}, or empty for a flag.
[[nodiscard]] std::string completion_table(const CLI::App& app);

}  // namespace finch::app
