#include "finch/process/output.hpp"

#include "finch/base/format.hpp"

#include <algorithm>
#include <utility>

namespace finch::process {

void KeptText::append(std::string_view text) {
    total_ += text.size();
    const std::size_t room = std::min(half_ - head_.size(), text.size());
    head_.append(text.substr(0, room));
    text.remove_prefix(room);
    if (text.size() >= half_) {
        tail_ = text.substr(text.size() - half_);
        return;
    }
    if (tail_.size() + text.size() > 2 * half_) {
        tail_.erase(0, tail_.size() + text.size() - half_);
    }
    tail_.append(text);
}

std::string_view KeptText::tail() const {
    return std::string_view(tail_).substr(tail_.size() - std::min(tail_.size(), half_));
}

std::string KeptText::text() const {
    const std::size_t left_out = total_ - head_.size() - tail().size();
    if (left_out == 0) {
        return head_ + tail_;
    }
    return fmt::format("{}\n… {} bytes left out …\n{}", head_, left_out, tail());
}

void LineSplitter::append(std::string_view text) {
    while (!text.empty()) {
        if (std::exchange(after_return_, false) && text.front() == '\n') {
            text.remove_prefix(1);
            continue;
        }
        const std::size_t end = text.find_first_of("\r\n");
        extend(text.substr(0, end));
        if (end == std::string_view::npos) {
            return;
        }
        end_line();
        after_return_ = text[end] == '\r';
        text.remove_prefix(end + 1);
    }
}

void LineSplitter::extend(std::string_view piece) {
    const std::size_t room = std::min(longest_line - line_.size(), piece.size());
    line_.append(piece.substr(0, room));
    left_out_ += piece.size() - room;
}

void LineSplitter::end_line() {
    if (left_out_ > 0) {
        line_ += fmt::format(" … {} bytes left out", left_out_);
    }
    bytes_ += line_.size() + sizeof(std::string);
    lines_.push_back(std::exchange(line_, {}));
    left_out_ = 0;
}

void LineSplitter::finish() {
    if (!line_.empty()) {
        end_line();
    }
}

std::vector<std::string> LineSplitter::take() {
    bytes_ = 0;
    return std::exchange(lines_, {});
}

}  // namespace finch::process
