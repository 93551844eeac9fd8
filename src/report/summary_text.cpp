#include "finch/base/words.hpp"
#include "finch/report/summary.hpp"

#include <cstddef>
#include <sstream>
#include <string>

namespace finch::report {
namespace {

constexpr std::size_t columns = 100;

/// Lines of at most `columns`, the first behind "  - ".
std::string wrapped(const std::string& text) {
    std::istringstream words(text);
    std::string lines = "  -";
    std::size_t column = lines.size();
    for (std::string word; words >> word;) {
        if (column + 1 + word.size() > columns) {
            lines += "\n   ";
            column = 3;
        }
        lines += " " + word;
        column += 1 + word.size();
    }
    return lines + "\n";
}

}  // namespace

std::string summary_text(const SummaryInput& input) {
    std::string text = "summary\n";
    std::string next;
    for (const Sentence& sentence : summary(input)) {
        (sentence.topic == Topic::next ? next : text) +=
            sentence.topic == Topic::next ? "  " + sentence.text + "\n" : wrapped(printable(sentence.text));
    }
    return text + (next.empty() ? "" : "next\n" + next);
}

}  // namespace finch::report
