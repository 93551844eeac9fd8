#include "finch/base/terminal.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace finch {
namespace {

std::string environment_variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// A number of columns, 0 for no terminal, and of rows.
struct Size {
    int columns = 0;
    int rows = 0;
};

Size size_of(int file) {
    if (::isatty(file) != 1) {
        return {};
    }
    winsize size{};
    const bool is_known = ::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    return is_known ? Size{size.ws_col, size.ws_row} : Size{Terminal{}.columns, Terminal{}.rows};
}

/// Returns the size of the terminal that shows the output of mpirun.
Size size_of_launcher_terminal() {
    const std::string path = "/proc/" + std::to_string(::getppid()) + "/fd/1";
    const int file = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        return {};
    }
    const Size size = size_of(file);
    ::close(file);
    return size;
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
            .columns = columns > 0 ? columns : Terminal{}.columns};
}

Terminal terminal() {
    Size size = size_of(STDOUT_FILENO);
    if (size.columns > 0 && std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
        size = size_of_launcher_terminal();
    }
    Terminal found = terminal_of(size.columns, environment_variable);
    found.can_rewrite = found.can_rewrite && std::getenv("PRTE_LAUNCHED") == nullptr;
    found.rows = size.rows > 0 ? size.rows : found.rows;
    return found;
}

Ellipsis ellipsis_of(const Terminal& terminal) {
    return terminal.has_unicode ? Ellipsis::unicode : Ellipsis::ascii;
}

std::string bold(const std::string& text, const Terminal& terminal) {
    return terminal.has_colours ? "\033[1m" + text + "\033[0m" : text;
}

}  // namespace finch
