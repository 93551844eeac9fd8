#pragma once

#include <string>
#include <vector>

namespace finch::report {

/// Lines of cells, as a table whose columns are as wide as they must be. Cells that are numbers stand to the right.
class Grid {
public:
    explicit Grid(std::vector<std::string> head) : lines_{std::move(head)} {}
    void add(std::vector<std::string> line) { lines_.push_back(std::move(line)); }
    [[nodiscard]] bool empty() const noexcept { return lines_.size() == 1; }
    /// Every line indented by two spaces.
    [[nodiscard]] std::string text() const;

private:
    std::vector<std::vector<std::string>> lines_;  ///< the first is the head
};

}  // namespace finch::report
