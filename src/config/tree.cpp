#include "finch/config/tree.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace finch::config {

const Tree* Tree::find(std::string_view key) const noexcept {
    const auto found = std::find(keys.begin(), keys.end(), key);
    return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

Tree* Tree::find(std::string_view key) noexcept {
    return const_cast<Tree*>(std::as_const(*this).find(key));
}

const Tree& Tree::operator[](std::string_view key) const {
    const Tree* const found = find(key);
    if (found == nullptr) {
        throw Error(fmt::format("no key {} in a completed section", key));
    }
    return *found;
}

std::optional<std::string> Tree::gene_name() const {
    if (kind != Kind::scalar || text.empty() || text.front() != '$') {
        return {};
    }
    return text.substr(1);
}

void fail(const Tree& at, const std::string& path, const std::string& what) {
    const bool place_says_it = path.empty() || at.place == "--set " + path;
    throw ConfigError(place_says_it ? fmt::format("{}: {}", at.place, what)
                                    : fmt::format("{}: {}: {}", at.place, path, what));
}

std::string path_of(const std::string& parent, std::string_view key) {
    return parent.empty() ? std::string(key) : fmt::format("{}.{}", parent, key);
}

std::string path_of(const std::string& parent, std::size_t index) {
    return fmt::format("{}[{}]", parent, index);
}

std::optional<std::int64_t> whole_number(const Tree& scalar) {
    const std::string& text = scalar.text;
    const std::size_t digits = !text.empty() && text.front() == '-' ? 1 : 0;
    const bool leading_zero = text.size() > digits + 1 && text[digits] == '0';
    const bool is_plain = scalar.kind == Tree::Kind::scalar && !scalar.quoted && !leading_zero;
    return is_plain ? parsed<std::int64_t>(text) : std::nullopt;
}

std::optional<double> real_number(const Tree& scalar) {
    const std::string& text = scalar.text;
    const bool decimal = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
    const bool is_plain = scalar.kind == Tree::Kind::scalar && !scalar.quoted && decimal;
    const auto value = is_plain ? parsed<double>(text) : std::nullopt;
    return value && std::isfinite(*value) ? value : std::nullopt;
}

bool is_beyond_numbers(const Tree& scalar) {
    double value = 0;
    const char* const end = scalar.text.data() + scalar.text.size();
    const auto [stopped, error] = std::from_chars(scalar.text.data(), end, value);
    return scalar.kind == Tree::Kind::scalar && !scalar.quoted && error == std::errc::result_out_of_range &&
           stopped == end;
}

std::optional<bool> flag(const Tree& scalar) {
    if (scalar.kind != Tree::Kind::scalar || scalar.quoted || (scalar.text != "true" && scalar.text != "false")) {
        return {};
    }
    return scalar.text == "true";
}

}  // namespace finch::config
