#pragma once

#include <string>
#include <vector>

namespace finch::report {

/// Lines of cells, as a table whose columns are as wide as they must be.
class Grid {
public:
    /// Where the cells of a column stand that has numbers in it; those of another one stand to the left.
    enum class Numbers { right, left };

    explicit Grid(std::vector<std::string> head, Numbers numbers = Numbers::right)
        : lines_{std::move(head)}, numbers_(numbers) {}
    void add(std::vector<std::string> line) { lines_.push_back(std::move(line)); }
    [[nodiscard]] bool empty() const noexcept { return lines_.size() == 1; }
    /// Every line indented by two spaces.
    [[nodiscard]] std::string text() const;

private:
    std::vector<std::vector<std::string>> lines_;  ///< the first is the head
    Numbers numbers_;
};

}  // namespace finch::report
