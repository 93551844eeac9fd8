#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

/// Messages about a wrong command line, with the command that was probably meant.
namespace finch::app {

/// Returns the message about `word`, the first argument, if it is neither a verb nor an option; otherwise an empty
/// text.
[[nodiscard]] std::string verb_problem(const CLI::App& app, const std::string& word);

/// Returns the message about a command line that `app` refused with `error`.
[[nodiscard]] std::string misuse_text(const CLI::App& app, const CLI::ParseError& error);

}  // namespace finch::app
