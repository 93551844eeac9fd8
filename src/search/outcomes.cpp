#include "finch/search/outcomes.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <ranges>
#include <vector>

namespace finch::search {
namespace {

constexpr std::size_t shown_problems = 3;
constexpr std::size_t longest_problem = 200;  ///< bytes

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

/// Cuts `text` to its maximum length, between two UTF-8 characters.
std::string shortened(std::string text) {
    if (text.size() <= longest_problem) {
        return text;
    }
    std::size_t end = longest_problem;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
        --end;
    }
    return text.substr(0, end) + "…";
}

}  // namespace

std::string telling_line(const std::string& problem) {
    const std::string cause = own_cause(problem);
    std::string last;
    std::string error;
    for (std::size_t begin = 0; begin <= problem.size();) {
        const std::size_t end = std::min(problem.find('\n', begin), problem.size());
        std::string line = problem.substr(begin, end - begin);
        line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
        begin = end + 1;
        if (line.empty()) {
            continue;
        }
        const bool is_error = line.find("Error:") != std::string::npos || line.find("Exception:") != std::string::npos;
        error = is_error ? line : error;
        if (last.empty() || !is_remark(line)) {
            last = std::move(line);
        }
    }
    if (error.empty()) {
        return cause.empty() ? last : cause;
    }
    return cause.empty() || error.starts_with(cause) ? error : cause + ": " + error;
}

std::string one_line(const std::string& problem) {
    const std::size_t first_end = problem.find('\n');
    return first_end == std::string::npos
               ? problem
               : problem.substr(0, first_end) + " … " + problem.substr(problem.rfind('\n') + 1);
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
        problem.example = problem.count == 0 ? shortened(std::move(line)) : problem.example;
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
