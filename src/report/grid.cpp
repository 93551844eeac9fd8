#include "grid.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <cctype>

namespace finch::report {
namespace {

bool is_number(const std::string& text) {
    const auto belongs = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == ' '; };
    return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) &&
           (text.ends_with('%') || std::all_of(text.begin(), text.end(), belongs));
}

}  // namespace

std::string Grid::text() const {
    std::vector<std::size_t> widths(lines_.front().size(), 0);
    std::vector<bool> right(widths.size(), false);
    for (const auto& line : lines_) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            widths[i] = std::max(widths[i], characters_in(line[i]));
            right[i] = right[i] || (numbers_ == Numbers::right && &line != &lines_.front() && is_number(line[i]));
        }
    }
    std::string text;
    for (const auto& line : lines_) {
        std::string row;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::string space(widths[i] - characters_in(line[i]), ' ');
            row += "  " + (right[i] ? space + line[i] : line[i] + space);
        }
        row.resize(row.find_last_not_of(' ') + 1);
        text += row + "\n";
    }
    return text;
}

}  // namespace finch::report
