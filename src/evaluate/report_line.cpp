#include "finch/evaluate/report_line.hpp"

#include "finch/base/format.hpp"
#include "finch/base/metric.hpp"
#include "finch/base/printable.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace finch::evaluate {
namespace {

constexpr std::string_view prefix = "finch ";
constexpr std::size_t most_values = 100;
constexpr std::size_t longest_name = Metric::longest_name;

bool is_space(char letter) {
    return std::isspace(static_cast<unsigned char>(letter)) != 0;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_space(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_space(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

/// As C, Python and JSON write numbers: also nan, inf, NaN, Infinity and a sign; too large is infinite, too small 0.
std::optional<double> number_in(std::string_view text) {
    const std::string word(text);
    const bool is_hexadecimal = word.find_first_of("xX(") != std::string::npos;
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    return word.empty() || is_hexadecimal || end != word.c_str() + word.size() ? std::nullopt : std::optional(value);
}

ReportLine problem(const std::string& what) {
    return {.kind = ReportLine::Kind::problem, .problem = what};
}

/// Cuts the text up to `end` off, trimmed.
std::string_view cut(std::string_view& rest, char end) {
    const std::size_t place = std::min(rest.find(end), rest.size());
    const std::string_view part = trimmed(rest.substr(0, place));
    rest.remove_prefix(std::min(place + 1, rest.size()));
    return part;
}

/// A name as it is recorded: one word, so that it can be kept as one.
std::string one_word(std::string_view name) {
    std::string word = printable(name);
    std::replace_if(
        word.begin(), word.end(), [](char letter) { return is_space(letter) || letter == '=' || letter == '"'; }, '_');
    return word;
}

/// Adds NAME with its number. Returns what is wrong with it; nothing if it was added.
std::optional<std::string> add(ReportLine& line, std::string_view name, std::string_view text) {
    const auto value = number_in(text);
    if (!value || name.empty() || name.size() > longest_name) {
        return fmt::format("'{}={}' is no name with a number", name.substr(0, longest_name),
                           text.substr(0, longest_name));
    }
    if (line.values.size() == most_values) {
        return fmt::format("more than {} values", most_values);
    }
    line.values.emplace_back(one_word(name), *value);
    return std::nullopt;
}

ReportLine read_words(std::string_view rest) {
    ReportLine line{.kind = ReportLine::Kind::report};
    for (rest = trimmed(rest); !rest.empty(); rest = trimmed(rest)) {
        std::string_view word = cut(rest, ' ');
        const std::string_view name = cut(word, '=');
        if (const auto wrong = add(line, name, trimmed(word))) {
            return problem(*wrong);
        }
    }
    return line;
}

/// One object of names with numbers.
ReportLine read_json(std::string_view rest) {
    ReportLine line{.kind = ReportLine::Kind::report};
    rest.remove_prefix(1);
    if (rest.empty() || rest.back() != '}') {
        return problem("an object that is not closed");
    }
    rest.remove_suffix(1);
    for (rest = trimmed(rest); !rest.empty(); rest = trimmed(rest)) {
        std::string_view member = cut(rest, ',');
        std::string_view name = cut(member, ':');
        if (name.size() < 2 || name.front() != '"' || name.back() != '"') {
            return problem(fmt::format("'{}' is no name in quotes", name.substr(0, longest_name)));
        }
        name = name.substr(1, name.size() - 2);
        if (trimmed(member).starts_with('"')) {
            continue;  // a word is no metric
        }
        if (const auto wrong = add(line, name, trimmed(member))) {
            return problem(*wrong);
        }
    }
    return line;
}

}  // namespace

std::optional<double> ReportLine::value(std::string_view name) const {
    const auto found =
        std::find_if(values.begin(), values.end(), [name](const auto& one) { return one.first == name; });
    return found == values.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ReportLine> read_report_line(const std::string& line) {
    if (!line.starts_with(prefix)) {
        return std::nullopt;
    }
    const std::string_view rest = trimmed(std::string_view(line).substr(prefix.size()));
    if (rest == "stop?") {
        return ReportLine{.kind = ReportLine::Kind::question};
    }
    if (rest == "done") {
        return ReportLine{.kind = ReportLine::Kind::done};
    }
    if (rest.starts_with("done ")) {
        return ReportLine{.kind = ReportLine::Kind::done, .id = std::string(trimmed(rest.substr(5)))};
    }
    if (rest.starts_with('{')) {
        return read_json(rest);
    }
    const std::string_view first = rest.substr(0, rest.find(' '));
    return first.find('=') == std::string_view::npos ? std::nullopt : std::optional(read_words(rest));
}

}  // namespace finch::evaluate
