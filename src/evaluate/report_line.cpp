#include "finch/evaluate/report_line.hpp"

#include "finch/base/format.hpp"
#include "finch/base/metric.hpp"
#include "finch/base/printable.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
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

/// A name as it is recorded: one word, so that it can be kept as one.
std::string one_word(std::string_view name) {
    std::string word = printable(name);
    std::replace_if(
        word.begin(), word.end(), [](char letter) { return is_space(letter) || letter == '=' || letter == '"'; }, '_');
    return word;
}

bool is_of_curve(std::string_view name) {
    return std::find(names_of_curve.begin(), names_of_curve.end(), name) != names_of_curve.end();
}

/// Adds NAME with its number, in place of an earlier one of the name. What is no number, has a name that is too long,
/// or comes after too many others is left out, but for what the learning curve needs. Returns what is wrong; nothing
/// where nothing is.
std::optional<std::string> add(ReportLine& line, std::string_view name, std::string_view text) {
    const auto value = number_in(text);
    if (!value && is_of_curve(name)) {
        return fmt::format("'{}={}'", name, printable(text.substr(0, longest_name)));
    }
    const std::string known = one_word(name);
    if (!value || known.empty() || known.size() > longest_name) {
        return std::nullopt;
    }
    const auto same =
        std::find_if(line.values.begin(), line.values.end(), [&known](const auto& one) { return one.first == known; });
    if (same != line.values.end()) {
        same->second = *value;
    } else if (line.values.size() < most_values || is_of_curve(known)) {
        line.values.emplace_back(known, *value);
    }
    return std::nullopt;
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
        if (const auto wrong = add(line, word.substr(0, sign), word.substr(sign + 1))) {
            return problem(*wrong + " is no number");
        }
    }
    return line;
}

void append_utf8(std::string& text, std::uint32_t code) {
    const auto put = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0 | code >> 6);
        put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        put(0xE0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    } else {
        put(0xF0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3F));
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    }
}

/// One object of names with values, as JSON has it (RFC 8259) and as Python writes it: NaN and Infinity are numbers.
/// (No library reads these.)
class ObjectReader {
public:
    explicit ObjectReader(std::string_view text) : rest_(text) {}

    /// Calls `take(name, value)` with each member's text. Returns what is wrong with the object; nothing if nothing is.
    template <class Take>
    std::optional<std::string> read(Take take) {
        if (!eat('{')) {
            return "no object";
        }
        for (bool is_first = true; !eat('}'); is_first = false) {
            if (!is_first && !eat(',')) {
                return rest_.empty() ? "an object that is not closed" : "an object without a comma between its members";
            }
            const auto name = read_text();
            if (!name || !eat(':')) {
                return rest_.empty() ? "an object that is not closed" : "a member without a name in quotes and a colon";
            }
            if (const auto wrong = take(*name, read_value())) {
                return wrong;
            }
        }
        return rest_.empty() ? std::nullopt : std::optional<std::string>("more behind the object");
    }

private:
    /// Takes `letter`, if it comes next, and spaces around it.
    bool eat(char letter) {
        rest_ = trimmed(rest_);
        const bool comes = !rest_.empty() && rest_.front() == letter;
        rest_ = trimmed(rest_.substr(comes ? 1 : 0));
        return comes;
    }
    std::optional<std::string> read_text() {
        if (rest_.empty() || rest_.front() != '"') {
            return std::nullopt;
        }
        std::string text;
        for (rest_.remove_prefix(1); !rest_.empty() && rest_.front() != '"'; rest_.remove_prefix(1)) {
            if (rest_.front() != '\\' || rest_.size() == 1) {
                text += rest_.front();
                continue;
            }
            rest_.remove_prefix(1);
            static constexpr std::string_view letters = "bfnrt";
            static constexpr std::string_view meant = "\b\f\n\r\t";
            const std::size_t place = letters.find(rest_.front());
            if (rest_.front() == 'u') {
                append_utf8(text, read_code());
            } else {
                text += place != std::string_view::npos ? meant[place] : rest_.front();
            }
        }
        const bool is_closed = !rest_.empty();
        rest_.remove_prefix(is_closed ? 1 : 0);
        return is_closed ? std::optional(text) : std::nullopt;
    }
    /// The code behind the 'u' of an escape, of which it leaves the last letter; both halves of a surrogate pair.
    std::uint32_t read_code() {
        const std::uint32_t first = read_hex();
        if (first >= 0xD800 && first < 0xDC00 && rest_.substr(1).starts_with("\\u")) {
            rest_.remove_prefix(2);
            const std::uint32_t second = read_hex();
            return second >= 0xDC00 && second < 0xE000 ? 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00) : '?';
        }
        return first >= 0xD800 && first < 0xE000 ? '?' : first;
    }
    std::uint32_t read_hex() {
        std::uint32_t code = 0;
        for (int digits = 0; digits < 4 && rest_.size() > 1 && std::isxdigit(static_cast<unsigned char>(rest_[1])) != 0;
             ++digits) {
            rest_.remove_prefix(1);
            code = 16 * code + static_cast<std::uint32_t>(std::stoul(std::string(1, rest_.front()), nullptr, 16));
        }
        return code;
    }
    /// Up to the member's end: a number, a word, a text, or all of an object or a list.
    std::string_view read_value() {
        const std::string_view from = rest_;
        for (int depth = 0; !rest_.empty(); rest_.remove_prefix(1)) {
            const char letter = rest_.front();
            if (letter == '"') {
                if (!read_text() || rest_.empty()) {
                    break;
                }
            }
            if (depth == 0 && (rest_.front() == ',' || rest_.front() == '}')) {
                break;
            }
            depth += rest_.front() == '{' || rest_.front() == '[' ? 1 : 0;
            depth -= rest_.front() == '}' || rest_.front() == ']' ? 1 : 0;
        }
        return trimmed(from.substr(0, from.size() - rest_.size()));
    }

    std::string_view rest_;
};

ReportLine read_json(std::string_view text) {
    ReportLine line{.kind = ReportLine::Kind::report};
    const auto wrong = ObjectReader(text).read([&line](const std::string& name, std::string_view value) {
        const auto what = add(line, name, value);
        return what ? std::optional(*what + " is no number") : std::nullopt;
    });
    return wrong ? problem(*wrong) : line;
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
