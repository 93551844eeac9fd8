#include "finch/search/outcomes.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <ranges>
#include <sstream>
#include <vector>

namespace finch::search {
namespace {

constexpr std::size_t shown_problems = 3;
constexpr std::size_t longest_problem = 200;  ///< characters

bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

/// Returns whether `letter` may be part of a number, id, name or path.
bool is_of_word(char letter) {
    static constexpr std::string_view others = "_.+-/\\~";
    return is_digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (static_cast<unsigned char>(letter) >= 0x80) || others.find(letter) != std::string_view::npos;
}

/// Returns the cause of a failure that Finch itself found, regardless of the program's output: a signal, processes that
/// still ran, no loss, or output that cannot be parsed. Returns an empty text if the program only ended with an exit
/// code.
std::string own_cause(const std::string& problem) {
    const std::string line = problem.substr(0, problem.find('\n'));
    if (line.starts_with("it ended without a loss") || line.starts_with("it said ")) {
        return line;
    }
    for (const std::string_view beginning : {"ended by signal ", "it ended while "}) {
        const std::size_t begin = line.find(beginning);
        if (begin == 0 || (begin != std::string::npos && line.starts_with("rank "))) {
            return line.substr(0, std::min(line.find(')', begin), line.size() - 1) + 1);
        }
    }
    return {};
}

/// Returns whether a line only explains the line before it.
bool is_remark(std::string_view line) {
    return line.starts_with("warnings.warn(") || line.starts_with("note: ");
}

/// Returns the line of a program's output that names its failure: the exception of the last Python traceback, or else
/// the last line with the name of an error. Returns an empty text if there is none. A launcher's own exception without
/// a message (torchrun) does not count after another one. The lines of a traceback may have a prefix: "[rank0]: ".
std::string_view reason_in(std::string_view output) {
    constexpr std::string_view header = "Traceback (most recent call last):";
    std::string_view exception;
    std::string_view error;
    std::string_view prefix;
    bool in_traceback = false;
    for (std::size_t end = 0, begin = 0; begin < output.size(); begin = end + 1) {
        end = std::min(output.find('\n', begin), output.size());
        std::string_view line = output.substr(begin, end - begin);
        line = line.substr(0, line.find_last_not_of("\r ") + 1);  // npos + 1 is 0
        if (const std::size_t at = line.find(header); at != std::string_view::npos) {
            in_traceback = true;
            prefix = line.substr(0, at);
            continue;
        }
        prefix = line.starts_with(prefix) ? prefix : "";  // "exit code 1: " is only before the first line
        const std::string_view text = line.substr(in_traceback ? prefix.size() : 0);
        if (in_traceback && !text.empty() && text.find_first_of(" \t") != 0) {
            in_traceback = false;
            exception = exception.empty() || !text.ends_with(':') ? text : exception;
        } else if (line.find("Error:") != std::string_view::npos || line.find("Exception:") != std::string_view::npos) {
            error = line.substr(line.find_first_not_of(" \t"));
        }
    }
    return exception.empty() ? error : exception;
}

}  // namespace

std::string telling_line(const std::string& problem) {
    const std::string cause = own_cause(problem);
    const std::string reason(reason_in(problem));
    if (!reason.empty()) {
        return cause.empty() || reason.starts_with(cause) ? reason : cause + ": " + reason;
    }
    std::string last;
    std::istringstream lines(problem);
    for (std::string line; std::getline(lines >> std::ws, line);) {
        last = last.empty() || !is_remark(line) ? line : last;
    }
    return cause.empty() ? last : cause;
}

std::string one_line(const std::string& problem) {
    const std::string first = problem.substr(0, problem.find('\n'));
    if (first == problem || !own_cause(problem).empty()) {
        return first == problem ? first : telling_line(problem);
    }
    const std::size_t code = first.find("exit code ");  // the program's output follows it
    const bool is_exit = code == 0 || first.starts_with("rank ");
    return first.substr(0, is_exit ? first.find(": ", code) : first.size()) + ": " + telling_line(problem);
}

std::string_view up_to_reason(std::string_view output, std::size_t lines) {
    const std::string_view reason = reason_in(output);
    const std::string_view rest = reason.empty() ? "" : output.substr(reason.data() + reason.size() - output.data());
    std::size_t begin = output.find_last_not_of("\r\n ") + 1;  // npos + 1 is 0
    for (std::size_t line = 0; line < lines && begin > 0; ++line) {
        begin = std::max<std::size_t>(output.rfind('\n', begin - 1) + 1, 1) - 1;
    }
    const bool is_near = std::count(rest.begin(), rest.end(), '\n') < static_cast<std::ptrdiff_t>(10 * lines);
    return is_near && reason_in(output.substr(begin)) != reason ? output.substr(0, output.size() - rest.size())
                                                                : output;
}

std::string without_numbers(std::string_view text) {
    std::string out;
    std::string_view before;  // the previous word
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && is_of_word(text[end])) {
            ++end;
        }
        if (end == at) {
            out += text[at++];
            continue;
        }
        std::string_view word = text.substr(at, end - at);
        word.remove_prefix(word.find_last_of('/') + 1);  // npos + 1 is 0
        const bool is_code = before == "code" || before == "signal" || before == "Errno";
        out += !is_code && std::any_of(word.begin(), word.end(), is_digit) ? "#" : word;
        before = word;
        at = end;
    }
    return out;
}

Outcomes::Outcomes(const Population& population) {
    for (const auto& [id, individual] : population.individuals()) {
        add(individual);
    }
}

void Outcomes::add(const Individual& individual) {
    if (!individual.finished_training() || individual.is_reused()) {
        return;
    }
    ++counts_.at(static_cast<std::size_t>(individual.outcome));
    nodes_[individual.node].first += has_failed(individual) ? 1 : 0;
    ++nodes_[individual.node].second;
    if (!individual.problem.empty()) {
        std::string line = telling_line(individual.problem);
        const Outcome group = has_failed(individual) ? Outcome::failed : individual.outcome;
        Problem& problem = problems_[group][without_numbers(line)];
        problem.example = problem.count == 0 ? cut(line, longest_problem) : problem.example;
        ++problem.count;
    }
}

std::string Outcomes::counts() const {
    std::string text = fmt::format("{} evaluated", count(Outcome::evaluated));
    for (const Outcome outcome : {Outcome::pruned, Outcome::stopped}) {
        text += count(outcome) > 0 ? fmt::format(", {} {}", count(outcome), word(outcome)) : "";
    }
    const std::string failures = failure_counts();
    return text + (failures.empty() ? "" : ", ") + failures;
}

std::string Outcomes::failure_counts() const {
    std::vector<std::string> parts;
    for (const Outcome outcome : {Outcome::diverged, Outcome::out_of_memory, Outcome::failed}) {
        if (count(outcome) > 0) {
            parts.push_back(fmt::format("{} {}", count(outcome), word(outcome)));
        }
    }
    return join(parts);
}

std::string Outcomes::problems() const {
    std::vector<std::string> parts;
    for (const Outcome group :
         {Outcome::failed, Outcome::diverged, Outcome::pruned, Outcome::stopped, Outcome::evaluated}) {
        if (const auto found = problems_.find(group); found != problems_.end()) {
            parts.push_back((group == Outcome::failed ? "" : fmt::format("of the {} ", word(group))) +
                            problems_text(found->second));
        }
    }
    std::multimap<std::size_t, std::string> nodes;  // by failures
    for (const auto& [node, counts] : nodes_) {
        nodes.emplace(counts.first, fmt::format("{} of {} on {}", counts.first, counts.second, node));
    }
    if (nodes.size() > 1 && nodes.rbegin()->first > 0) {
        auto shown = nodes | std::views::reverse | std::views::values | std::views::take(5);
        parts.push_back(fmt::format("failed by node: {}", fmt::join(shown.begin(), shown.end(), ", ")));
    }
    return parts.empty() ? "" : fmt::format(": {}", fmt::join(parts, "; "));
}

std::string Outcomes::problems_text(const Problems& problems) {
    std::vector<const Problem*> order;
    for (const auto& [key, problem] : problems) {
        order.push_back(&problem);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Problem* a, const Problem* b) { return a->count > b->count; });
    std::string text;
    for (std::size_t i = 0; i < std::min(order.size(), shown_problems); ++i) {
        text += fmt::format("{}{} × {}", i == 0 ? "" : "; ", order[i]->count, order[i]->example);
    }
    return text +
           (order.size() > shown_problems ? fmt::format("; and {} other problems", order.size() - shown_problems) : "");
}

}  // namespace finch::search
