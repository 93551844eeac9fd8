#include "finch/config/command.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/synonyms.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

namespace finch::config {
namespace {

bool is_of_name(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// Returns the end of the placeholder name that begins at `begin`; npos if no closing brace follows the name.
std::size_t end_of_name(const std::string& text, std::size_t begin) {
    std::size_t end = begin;
    while (end < text.size() && is_of_name(text[end])) {
        ++end;
    }
    const bool begins = end > begin && std::isdigit(static_cast<unsigned char>(text[begin])) == 0;
    return begins && end < text.size() && text[end] == '}' ? end : std::string::npos;
}

bool stands_at(const std::string& text, std::size_t place, const char* what) {
    return place < text.size() && text.compare(place, 2, what) == 0;
}

void check_name(const std::string& name, const std::vector<std::string>& names, const std::string& before) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        const auto meant = meant_word(name, names);
        const std::string hint = before.ends_with('$') ? fmt::format("; for a shell: ${0} or ${{{{{0}}}}}", name)
                                 : meant               ? fmt::format("; did you mean {{{}}}?", *meant)
                                                       : "";
        throw ConfigError(fmt::format("{{{}}} names no gene{}; accepted: {}", name, hint, join(names)));
    }
}

}  // namespace

Template::Template(const std::string& text, const std::vector<std::string>& names, Braces braces) {
    std::string plain;
    const auto add_name = [&](const std::string& name) {
        check_name(name, names, plain);
        pieces_.push_back({std::move(plain)});
        pieces_.push_back({name, true});
        plain.clear();
    };
    for (std::size_t at = 0; at < text.size();) {
        const bool is_brace = text[at] == '{' || text[at] == '}';
        const std::size_t end = text[at] == '{' ? end_of_name(text, at + 1) : std::string::npos;
        if (braces == Braces::doubled && (stands_at(text, at, "{{") || stands_at(text, at, "}}"))) {
            plain += text[at];
            at += 2;
        } else if (braces == Braces::literal && stands_at(text, at, "{{") &&
                   stands_at(text, end_of_name(text, at + 2), "}}")) {
            const std::size_t close = end_of_name(text, at + 2);
            plain += text.substr(at + 1, close - at);
            at = close + 2;
        } else if (end != std::string::npos) {
            add_name(text.substr(at + 1, end - at - 1));
            at = end + 1;
        } else if (is_brace && braces == Braces::doubled) {
            throw ConfigError(
                fmt::format("has a '{}' around no name, at character {}; accepted: {{NAME}}, or '{}{}' "
                            "for the brace itself",
                            text[at], at + 1, text[at], text[at]));
        } else {
            plain += text[at++];
        }
    }
    pieces_.push_back({std::move(plain)});
}

Template Template::plain(std::string text) {
    Template constant;
    constant.pieces_.push_back({std::move(text)});
    return constant;
}

std::string Template::render(const std::map<std::string, std::string>& values) const {
    std::string text;
    for (const Piece& piece : pieces_) {
        text += piece.is_name ? values.at(piece.text) : piece.text;
    }
    return text;
}

bool Template::uses(const std::string& name) const {
    return std::any_of(pieces_.begin(), pieces_.end(),
                       [&name](const Piece& piece) { return piece.is_name && piece.text == name; });
}

bool Template::is_constant() const noexcept {
    return pieces_.size() == 1;
}

std::vector<std::string> split_command(const std::string& command) {
    std::vector<std::string> arguments;
    bool is_open = false;  // an argument has begun
    char quote = 0;
    for (std::size_t at = 0; at < command.size(); ++at) {
        const char letter = command[at];
        const bool is_space = std::isspace(static_cast<unsigned char>(letter)) != 0;
        if (quote == 0 && is_space) {
            is_open = false;
            continue;
        }
        if (!is_open) {
            arguments.emplace_back();
            is_open = true;
        }
        if (letter == '\\' && quote != '\'' && at + 1 < command.size()) {
            arguments.back() += command[++at];
        } else if (quote == 0 && (letter == '\'' || letter == '"')) {
            quote = letter;
        } else if (letter == quote && quote != 0) {
            quote = 0;
        } else {
            arguments.back() += letter;
        }
    }
    if (quote != 0) {
        throw ConfigError(fmt::format("has an open quote {}", quote));
    }
    if (arguments.empty() || arguments.front().empty()) {
        throw ConfigError("is empty; accepted: a program and its arguments");
    }
    return arguments;
}

std::string shell_word(const std::string& command) {
    static constexpr std::array<std::string_view, 12> of_shell{"&&", "||", "|",  ";",  "&",    "<",
                                                               ">",  ">>", "2>", "&>", "2>&1", "|&"};
    const std::vector<std::string> arguments = split_command(command);
    std::istringstream words(command);
    for (std::string word; words >> word;) {
        const bool is_argument = std::find(arguments.begin(), arguments.end(), word) != arguments.end();
        if (is_argument && std::find(of_shell.begin(), of_shell.end(), word) != of_shell.end()) {
            return word;
        }
    }
    return "";
}

}  // namespace finch::config
