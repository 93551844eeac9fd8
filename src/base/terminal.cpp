#include "finch/base/terminal.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace finch {
namespace {

constexpr int usual_columns = 80;

std::string environment_variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// Returns the width of an open terminal, or 0 if `file` is not a terminal.
int columns_of(int file) {
    if (::isatty(file) != 1) {
        return 0;
    }
    winsize size{};
    return ::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual_columns;
}

/// Returns the width of the terminal that shows the output of mpirun, or 0 if there is none.
int columns_of_launcher() {
    const std::string path = "/proc/" + std::to_string(::getppid()) + "/fd/1";
    const int file = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        return 0;
    }
    const int columns = columns_of(file);
    ::close(file);
    return columns;
}

/// True if the locale of the environment is UTF-8, whether or not it is installed.
bool is_utf8(const std::function<std::string(const char*)>& variable) {
    for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        std::string locale = variable(name);
        if (!locale.empty()) {
            std::erase(locale, '-');
            std::transform(locale.begin(), locale.end(), locale.begin(),
                           [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
            return locale.find("utf8") != std::string::npos;
        }
    }
    return false;
}

}  // namespace

Terminal terminal_of(int columns, const std::function<std::string(const char*)>& variable) {
    const bool is_capable = columns > 0 && variable("TERM") != "dumb";
    const std::string forced = variable("FORCE_COLOR");
    return {.can_rewrite = is_capable,
            .has_colours = variable("NO_COLOR").empty() && (is_capable || (!forced.empty() && forced != "0")),
            .has_unicode = is_utf8(variable),
            .columns = columns > 0 ? columns : usual_columns};
}

Terminal terminal() {
    int columns = columns_of(STDOUT_FILENO);
    if (columns > 0 && std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
        columns = columns_of_launcher();
    }
    return terminal_of(columns, environment_variable);
}

std::string bold(const std::string& text, const Terminal& terminal) {
    return terminal.has_colours ? "\033[1m" + text + "\033[0m" : text;
}

}  // namespace finch
