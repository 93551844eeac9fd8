#include "finch/evaluate/report_line.hpp"

#include "finch/base/format.hpp"
#include "finch/base/metric.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

namespace finch::evaluate {
namespace {

constexpr std::string_view prefix = "finch ";
constexpr std::size_t most_values = 100;
constexpr std::size_t longest_name = Metric::longest_name;
constexpr std::size_t longest_quote = 200;  // bytes

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

/// Parses a number as C and Python write it, including nan, inf, Infinity and a sign. Too large numbers become
/// infinite, and too small numbers become 0. Rejects hexadecimal numbers.
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

/// Returns a name as it is recorded: as one word, so that a kept report can be read again.
std::string one_word(std::string_view name) {
    std::string word = printable(name);
    std::replace_if(
        word.begin(), word.end(), [](char letter) { return is_space(letter) || letter == '=' || letter == '"'; }, '_');
    return word;
}

bool is_of_curve(std::string_view name) {
    return std::find(names_of_curve.begin(), names_of_curve.end(), name) != names_of_curve.end();
}

std::string no_number(std::string_view name, std::string_view text) {
    return fmt::format("'{}={}' is no number", name, printable(text.substr(0, longest_name)));
}

/// Adds a name with its number, or replaces the earlier number of the same name. Ignores names that are too long. After
/// `most_values` names, ignores further names unless they belong to the learning curve.
void add(ReportLine& line, std::string_view name, double value) {
    const std::string known = one_word(name);
    if (known.empty() || known.size() > longest_name) {
        return;
    }
    const auto same =
        std::find_if(line.values.begin(), line.values.end(), [&known](const auto& one) { return one.first == known; });
    if (same != line.values.end()) {
        same->second = value;
    } else if (line.values.size() < most_values || is_of_curve(known)) {
        line.values.emplace_back(known, value);
    }
}

ReportLine read_words(std::string_view rest) {
    ReportLine line{.kind = ReportLine::Kind::report};
    for (rest = trimmed(rest); !rest.empty(); rest = trimmed(rest)) {
        const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
        rest.remove_prefix(word.size());
        const std::size_t sign = word.find('=');
        if (sign == 0 || sign == std::string_view::npos) {
            return problem(fmt::format("'{}' is no name with a number", printable(word.substr(0, longest_name))));
        }
        const std::string_view name = word.substr(0, sign);
        const std::string_view text = word.substr(sign + 1);
        if (name == name_of_checkpoint) {
            line.checkpoint = text;
        } else if (const auto value = number_in(text)) {
            add(line, name, *value);
        } else if (is_of_curve(name)) {
            return problem(no_number(name, text));
        }
    }
    return line;
}

/// A JSON handler that adds the numbers of the top-level members to a report. The handler ignores all other members. A
/// member of the learning curve that is not a number ends the parsing.
class ObjectReader : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, ObjectReader> {
public:
    explicit ObjectReader(ReportLine& line) : line_(line) {}

    bool StartObject() { return enter(); }
    bool EndObject(rapidjson::SizeType /*members*/) { return leave(); }
    bool StartArray() { return enter(); }
    bool EndArray(rapidjson::SizeType /*elements*/) { return leave(); }
    bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
        if (depth_ == 1) {
            name_.assign(text, size);
        }
        return true;
    }
    bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
        if (names_checkpoint()) {
            line_.checkpoint.assign(text, size);
        }
        return other(fmt::format("\"{}\"", std::string_view(text, size)));
    }
    bool Null() { return other("null"); }
    bool Bool(bool is_true) { return other(is_true ? "true" : "false"); }
    /// Numbers are parsed as text: RapidJSON 1.1 reads a zero with 49 decimals as 7e246, and does not read 0e308 as
    /// zero.
    bool RawNumber(const char* text, rapidjson::SizeType size, bool /*copy*/) {
        if (names_checkpoint()) {
            line_.checkpoint.assign(text, size);
        } else if (depth_ == 1) {
            add(line_, name_, number_in({text, size}).value());
        }
        return true;
    }

    /// Returns an error text if parsing ended because a member of the learning curve was not a number; else empty.
    [[nodiscard]] const std::string& wrong() const { return wrong_; }

private:
    [[nodiscard]] bool names_checkpoint() const { return depth_ == 1 && name_ == name_of_checkpoint; }
    bool enter() { return other("...") && ++depth_ > 0; }
    bool leave() { return --depth_ >= 0; }
    bool other(std::string_view text) {
        if (depth_ == 1 && is_of_curve(name_)) {
            wrong_ = no_number(name_, text);
        }
        return wrong_.empty();
    }

    ReportLine& line_;
    int depth_ = 0;
    std::string name_;
    std::string wrong_;
};

bool is_of_number(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '+' || letter == '-' || letter == '.';
}

/// Converts a number that JSON does not have (nan, -inf, 1e999) to RapidJSON's notation. Returns other words unchanged.
std::string readable_number(const std::string& word) {
    const auto value = number_in(word);
    if (!value || std::isfinite(*value)) {
        return word;
    }
    return std::isnan(*value) ? "NaN" : *value > 0 ? "Infinity" : "-Infinity";
}

/// Returns the value of the `\uXXXX` at `at`; -1 if there is none.
int code_unit(std::string_view text, std::size_t at) {
    constexpr std::size_t size = 6;
    const std::string digits(text.substr(std::min(at + 2, text.size()), size - 2));
    const bool is_one = text.substr(std::min(at, text.size()), 2) == "\\u" && digits.size() == size - 2 &&
                        digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    return is_one ? static_cast<int>(std::strtol(digits.c_str(), nullptr, 16)) : -1;
}

/// Returns the escape sequence at `at` of a JSON string. Replaces half a surrogate pair by U+FFFD. Moves `at` behind
/// the sequence.
std::string readable_escape(std::string_view text, std::size_t& at) {
    const auto is_half = [&](std::size_t where, int first) {
        const int unit = code_unit(text, where);
        return unit >= first && unit < first + 0x400;
    };
    const bool is_pair = is_half(at, 0xD800) && is_half(at + 6, 0xDC00);
    const bool is_lone = !is_pair && (is_half(at, 0xD800) || is_half(at, 0xDC00));
    const std::string_view escape = text.substr(at, is_pair ? 12 : is_lone ? 6 : 2);
    at += escape.size();
    return is_lone ? "\\uFFFD" : std::string(escape);
}

/// Converts JSON that programs write to JSON that RapidJSON reads. Replaces other languages' words for NaN and
/// infinity, and half surrogate pairs in strings.
std::string readable_json(std::string_view text) {
    std::string readable;
    bool in_text = false;
    for (std::size_t at = 0; at < text.size();) {
        if (in_text && text[at] == '\\') {
            readable += readable_escape(text, at);
        } else if (!in_text && is_of_number(text[at])) {
            std::size_t end = at;
            while (end < text.size() && is_of_number(text[end])) {
                ++end;
            }
            readable += readable_number(std::string(text.substr(at, end - at)));
            at = end;
        } else {
            in_text = in_text != (text[at] == '"');
            readable += text[at++];
        }
    }
    return readable;
}

ReportLine read_json(const std::string& said) {
    const std::string text = readable_json(said);
    ReportLine line{.kind = ReportLine::Kind::report};
    ObjectReader reader(line);
    rapidjson::StringStream stream(text.c_str());
    constexpr unsigned flags =
        rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
    const rapidjson::ParseResult result = rapidjson::Reader().Parse<flags>(stream, reader);
    if (!reader.wrong().empty()) {
        return problem(reader.wrong());
    }
    return result ? line : problem(rapidjson::GetParseError_En(result.Code()));
}

}  // namespace

std::string without_escapes(const std::string& line) {
    constexpr char escape = '\x1b';
    std::string plain;
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t begin = std::min(line.find(escape, at), line.size());
        plain.append(line, at, begin - at);
        const char kind = begin + 1 < line.size() ? line[begin + 1] : '\0';
        std::size_t last = begin + 1;
        if (kind == '[') {  // parameters, then a letter or one of @ [ \ ] ^ _ ` { | } ~
            last = begin + 2;
            while (last < line.size() && (line[last] < '@' || line[last] > '~')) {
                ++last;
            }
        } else if (kind == ']') {  // a text that ends with a bell or ESC and a backslash
            const std::size_t end = line.find_first_of("\a\x1b", begin + 2);
            last = end == std::string::npos ? line.size() : line[end] == escape ? end + 1 : end;
        } else if (kind == '(' || kind == ')') {  // selects a character set
            last = begin + 2;
        }
        at = last + 1;
    }
    return plain;
}

std::optional<double> ReportLine::value(std::string_view name) const {
    const auto found =
        std::find_if(values.begin(), values.end(), [name](const auto& one) { return one.first == name; });
    return found == values.end() ? std::nullopt : std::optional(found->second);
}

namespace {

std::optional<ReportLine> read_line(std::string_view line) {
    if (!line.starts_with(prefix)) {
        return std::nullopt;
    }
    const std::string_view rest = trimmed(line.substr(prefix.size()));
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
        return read_json(std::string(rest));
    }
    const std::string_view first = rest.substr(0, rest.find(' '));
    return first.find('=') == std::string_view::npos ? std::nullopt : std::optional(read_words(rest));
}

}  // namespace

std::optional<ReportLine> read_report_line(const std::string& line) {
    const std::string text = without_escapes(line);
    std::optional<ReportLine> read = read_line(text);
    if (read) {
        read->text = printable(std::string_view(text).substr(0, longest_quote));
    }
    return read;
}

}  // namespace finch::evaluate
