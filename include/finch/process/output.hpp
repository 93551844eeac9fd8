#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace finch::process {

/// The beginning and the end of a text of any length, in bounded memory.
class KeptText {
public:
    /// Keeps the first and the last `bytes` / 2.
    explicit KeptText(std::size_t bytes) : half_(bytes / 2) {}

    void append(std::string_view text);
    /// The kept text, with "… N bytes left out …" on a line of its own between the halves if something is missing.
    [[nodiscard]] std::string text() const;

private:
    [[nodiscard]] std::string_view tail() const;

    std::size_t half_;
    std::size_t total_ = 0;
    std::string head_;
    std::string tail_;  ///< what follows the head: its last `half_` bytes at least
};

/// Cuts a stream of bytes into lines, which end with '\n', "\r\n" or, as progress bars do, '\r'.
class LineSplitter {
public:
    static constexpr std::size_t longest_line = std::size_t{64} << 10U;  ///< bytes

    void append(std::string_view text);
    /// Makes the remaining text without a line's end a line.
    void finish();
    /// The whole lines since the last call, without their ends. A line longer than `longest_line` is cut and ends in
    /// " … N bytes left out".
    [[nodiscard]] std::vector<std::string> take();
    [[nodiscard]] bool has_lines() const noexcept { return !lines_.empty(); }
    /// The memory, about, of the lines that wait to be taken.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
    void extend(std::string_view piece);
    void end_line();

    std::vector<std::string> lines_;
    std::size_t bytes_ = 0;
    std::string line_;  ///< begun
    std::size_t left_out_ = 0;
    bool after_return_ = false;  ///< a '\n' that follows ends no second line
};

}  // namespace finch::process
