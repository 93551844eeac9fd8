#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace finch::process {

/// The beginning and the end of a text of any length, in bounded memory.
class KeptText {
public:
    /// Keeps the first `bytes` / 2 bytes and the last `bytes` / 2 bytes.
    explicit KeptText(std::size_t bytes) : half_(bytes / 2) {}

    void append(std::string_view text);
    /// Returns the kept text. If bytes are missing, a line "… N bytes left out …" separates the two parts.
    [[nodiscard]] std::string text() const;
    /// Returns the number of bytes of the text, kept or not.
    [[nodiscard]] std::size_t total() const noexcept { return total_; }

private:
    [[nodiscard]] std::string_view tail() const;

    std::size_t half_;
    std::size_t total_ = 0;
    std::string head_;
    std::string tail_;  ///< the end of the text behind `head_`: at least `half_` bytes
};

/// A splitter of a byte stream into lines. A line ends with '\n', "\r\n" or, as in progress bars, '\r'.
class LineSplitter {
public:
    static constexpr std::size_t longest_line = std::size_t{64} << 10U;  ///< bytes

    void append(std::string_view text);
    /// Turns the remaining text without a line ending into a line.
    void finish();
    /// Returns the complete lines since the last call, without their line endings. A line longer than `longest_line` is
    /// cut and ends in " … N bytes left out".
    [[nodiscard]] std::vector<std::string> take();
    [[nodiscard]] bool has_lines() const noexcept { return !lines_.empty(); }
    /// Returns the approximate memory of the lines that take() has not returned yet.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
    void extend(std::string_view piece);
    void end_line();

    std::vector<std::string> lines_;
    std::size_t bytes_ = 0;
    std::string line_;  ///< incomplete line
    std::size_t left_out_ = 0;
    bool after_return_ = false;  ///< a '\n' now would belong to the '\r' before it
};

}  // namespace finch::process
