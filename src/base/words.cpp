#include "finch/base/words.hpp"

#include <algorithm>
#include <vector>

namespace finch {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    const std::size_t columns = b.size() + 1;
    std::vector<std::size_t> d((a.size() + 1) * columns);
    const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return d[i * columns + j]; };
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                at(i, j) = i + j;
                continue;
            }
            const std::size_t replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
            at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
            }
        }
    }
    return d.back();
}

std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> known) {
    const std::string* nearest = nullptr;
    std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string& candidate : known) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < least && distance < candidate.size()) {
            least = distance;
            nearest = &candidate;
        }
    }
    return nearest == nullptr ? std::nullopt : std::optional(*nearest);
}

std::string join(std::span<const std::string> words, std::string_view separator) {
    std::string joined;
    for (const std::string& word : words) {
        if (!joined.empty()) {
            joined += separator;
        }
        joined += word;
    }
    return joined;
}

std::string counted(std::int64_t count, std::string_view noun) {
    return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string counted_of(std::int64_t count, std::int64_t whole, std::string_view noun) {
    return whole < 0 ? counted(count, noun) : std::to_string(count) + " of " + counted(whole, noun);
}

}  // namespace finch
