#include "program_end.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/evaluate/report_line.hpp"
#include "finch/search/outcomes.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string_view>

namespace finch::evaluate {
namespace {

constexpr std::size_t lines_of_problem = 10;
constexpr std::size_t bytes_of_problem = 1500;

/// Returns the final text of a line on a terminal: the part after the last carriage return, without escape sequences.
std::string shown(const std::string& line) {
    const std::size_t end = line.find_last_not_of("\r ") + 1;  // npos + 1 is 0
    const std::size_t begin = line.substr(0, end).rfind('\r') + 1;
    return without_escapes(line.substr(begin, end - begin));
}

/// True for a row of dashes, equal signs and the like, as mpirun prints around its messages.
bool is_rule(const std::string& line) {
    return !line.empty() && line.find_first_not_of("-=_*#+~ \t") == std::string::npos;
}

}  // namespace

std::string last_lines(const std::string& output) {
    const std::string text(search::up_to_reason(output, lines_of_problem));
    std::string last;
    std::size_t end = text.find_last_not_of("\r\n ") + 1;  // npos + 1 is 0
    for (std::size_t lines = 0; end > 0 && lines < lines_of_problem && last.size() < bytes_of_problem;) {
        const std::size_t begin = text.rfind('\n', end - 1) + 1;
        const std::string line = shown(text.substr(begin, end - begin));
        end = begin > 0 ? begin - 1 : 0;
        if (!is_rule(line) && !(line.empty() && last.empty())) {
            last = line + (lines > 0 ? "\n" : "") + last;
            ++lines;
        }
    }
    return printable(std::string_view(last).substr(last.size() - std::min(last.size(), bytes_of_problem)));
}

std::string how_it_ended(const process::Ended& ended) {
    if (!ended.problem.empty()) {
        return ended.problem;
    }
    if (ended.signal != 0) {
        return fmt::format("ended by signal {} ({}{})", ended.signal, ::strsignal(ended.signal),
                           ended.signal == SIGKILL ? ", as the kernel does where memory runs out" : "");
    }
    if (ended.code == 0 && ended.cut_off > 0) {
        return fmt::format("it ended while {} of its processes still ran (a \"&\" without \"wait\"?)", ended.cut_off);
    }
    return fmt::format("exit code {}", ended.code);
}

bool is_port_taken(const std::string& said) {
    return said.find("EADDRINUSE") != std::string::npos || said.find("ddress already in use") != std::string::npos ||
           said.find("Errno 98]") != std::string::npos;
}

int signal_of_stop(const process::Ended& ended) {
    for (const int signal : {ended.signal, ended.code - 128}) {  // a shell returns 128 + the signal of its child
        if (cluster::is_stop_signal(signal)) {
            return signal;
        }
    }
    return 0;
}

}  // namespace finch::evaluate
