#pragma once

#include <string>

namespace CLI {
class App;
}

namespace finch::app {

/// Returns the data of the bash completion (tools/packaging/completion.bash): an assignment to the shell variable
/// `_finch_command_line`. The value has a line "VERB|NAME|TYPE" for each option, and a line "VERB||TYPE" for each
/// argument in its order. TYPE is the type that the help prints (RUN, FILE, …), a list of words {this,that}, or empty
/// for a flag.
[[nodiscard]] std::string completion_table(const CLI::App& app);

}  // namespace finch::app
