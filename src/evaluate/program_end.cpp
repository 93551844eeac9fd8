#include "program_end.hpp"

#include "finch/base/format.hpp"
#include "finch/base/printable.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/evaluate/report_line.hpp"

#include <csignal>
#include <cstring>
#include <sstream>
#include <string_view>

namespace finch::evaluate {
namespace {

constexpr std::size_t lines_of_problem = 10;
constexpr std::size_t bytes_of_problem = 1500;

}  // namespace

std::string last_lines(const std::string& text) {
    std::size_t end = text.size();
    while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' ')) {
        --end;
    }
    std::size_t begin = end;
    for (std::size_t lines = 0; begin > 0 && end - begin < bytes_of_problem; --begin) {
        if (text[begin - 1] == '\n' && ++lines == lines_of_problem) {
            break;
        }
    }
    return printable(std::string_view(text).substr(begin, end - begin));
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

std::string near_miss_in(const std::string& errors) {
    std::istringstream lines(errors);
    for (std::string text; std::getline(lines, text);) {
        if (const auto line = read_report_line(text)) {
            return fmt::format("'{}' is on standard error", line->text);
        }
    }
    return {};
}

}  // namespace finch::evaluate
