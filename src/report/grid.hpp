#pragma once

#include <string>
#include <vector>

namespace finch::report {

/// A text table. Each column is as wide as its longest cell.
class Grid {
public:
    /// The alignment of columns with numbers. All other columns are aligned to the left.
    enum class Numbers { right, left };

    explicit Grid(std::vector<std::string> head, Numbers numbers = Numbers::right)
        : lines_{std::move(head)}, numbers_(numbers) {}
    void add(std::vector<std::string> line) { lines_.push_back(std::move(line)); }
    [[nodiscard]] bool empty() const noexcept { return lines_.size() == 1; }
    /// Returns the table, each line indented by two spaces.
    [[nodiscard]] std::string text() const;

private:
    std::vector<std::vector<std::string>> lines_;  ///< the first line is the head
    Numbers numbers_;
};

}  // namespace finch::report
