#include "finch/process/child.hpp"

#include "finch/base/clock.hpp"

#include "messages.hpp"
#include "system_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace finch::process {
namespace {

constexpr std::size_t transfer_bytes = std::size_t{1} << 20U;
constexpr std::size_t waiting_bytes = std::size_t{1} << 20U;  ///< of lines that take_lines() has not taken yet

/// Reads about `most` bytes from the pipe into `sink`. Closes the descriptor at the end of file.
template <class Sink>
void read_pipe(FileDescriptor& pipe, std::size_t most, const Sink& sink) {
    std::array<char, std::size_t{64} << 10U> part;
    for (std::size_t total = 0; pipe && total < most;) {
        const ssize_t count = ::read(pipe.get(), part.data(), part.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return;
        }
        if (count == 0) {
            pipe.reset();
        }
        const auto size = static_cast<std::size_t>(count);
        sink(std::string_view(part.data(), size));
        total += size;
        if (size < part.size()) {
            return;  // the pipe is empty
        }
    }
}

/// Returns the capacity of the pipe: it cannot hold more bytes.
std::size_t pipe_bytes(const FileDescriptor& pipe) {
    return pipe ? static_cast<std::size_t>(std::max(0, ::fcntl(pipe.get(), F_GETPIPE_SZ))) : 0;
}

}  // namespace

Child::Child(Channels channels, std::size_t output_bytes)
    : channels_(std::move(channels)), output_(output_bytes), errors_(output_bytes) {}

Child::Child(Ended ended) : output_(0), errors_(0), ended_(std::move(ended)) {}

std::vector<std::string> Child::take_lines() {
    transfer();
    return lines_.take();
}

void Child::write(std::string_view bytes) {
    if (channels_.input && !input_closing_) {
        input_.append(bytes);
        send_input();
    }
}

void Child::close_input() {
    input_closing_ = true;
    send_input();
}

void Child::end(double grace_seconds) {
    const double grace = grace_seconds > 0 ? grace_seconds : 0;
    send_packet(channels_.control, Order{Order::Kind::end, 0, grace});
}

void Child::signal(int number) {
    send_packet(channels_.control, Order{Order::Kind::signal, number, 0});
}

std::optional<Ended> Child::ended() {
    transfer();
    return ended_;
}

void Child::add_descriptors(std::vector<pollfd>& descriptors) const {
    const auto add = [&](const FileDescriptor& descriptor, short events) {
        if (descriptor) {
            descriptors.push_back({descriptor.get(), events, 0});
        }
    };
    if (input_sent_ < input_.size()) {
        add(channels_.input, POLLOUT);
    }
    if (lines_.bytes() < waiting_bytes) {
        add(channels_.output, POLLIN);
    }
    add(channels_.errors, POLLIN);
    add(channels_.control, POLLIN);
}

void Child::transfer() {
    send_input();
    if (lines_.bytes() < waiting_bytes) {
        read_output(transfer_bytes);
    }
    read_errors(transfer_bytes);
    receive_report();
}

void Child::send_input() {
    while (channels_.input && input_sent_ < input_.size()) {
        const ssize_t count = ::write(channels_.input.get(), input_.data() + input_sent_,
                                      std::min(input_.size() - input_sent_, transfer_bytes));
        if (count < 0 && errno != EINTR) {
            return;
        }
        input_sent_ += static_cast<std::size_t>(std::max<ssize_t>(0, count));
    }
    input_.clear();
    input_sent_ = 0;
    if (input_closing_) {
        channels_.input.reset();
    }
}

void Child::read_output(std::size_t most) {
    read_pipe(channels_.output, most, [this](std::string_view part) {
        output_.append(part);
        lines_.append(part);
        if (part.empty()) {
            lines_.finish();
        }
    });
}

void Child::read_errors(std::size_t most) {
    read_pipe(channels_.errors, most, [this](std::string_view part) { errors_.append(part); });
}

void Child::receive_report() {
    Report report{};
    if (!channels_.control) {
        return;
    }
    switch (receive_packet(channels_.control, report)) {
        case Received::nothing:
            return;
        case Received::packet:
            ended_at_ = report.ended_at > 0 ? report.ended_at : unix_seconds();
            return finish(ended_of(report));
        case Received::end_of_file:
            return finish({0, SIGKILL, "the processes that watched over it were killed"});
    }
}

void Child::finish(Ended ended) {
    read_output(pipe_bytes(channels_.output));
    read_errors(pipe_bytes(channels_.errors));
    lines_.finish();
    channels_ = {};
    ended_ = std::move(ended);
}

bool wait_for_any(std::span<Child* const> children, double seconds) {
    const double deadline = steady_seconds() + seconds;
    std::vector<pollfd> descriptors;
    std::vector<std::size_t> ends;  // of each child's descriptors
    while (std::none_of(children.begin(), children.end(), [](const Child* child) { return child->has_something(); })) {
        descriptors.clear();
        ends.clear();
        for (const Child* child : children) {
            child->add_descriptors(descriptors);
            ends.push_back(descriptors.size());
        }
        if (poll_for(descriptors, std::max(0.0, deadline - steady_seconds())) <= 0) {
            return false;
        }
        std::size_t at = 0;
        for (std::size_t i = 0; i < children.size(); ++i) {
            const auto first = descriptors.begin() + static_cast<std::ptrdiff_t>(at);
            const auto last = descriptors.begin() + static_cast<std::ptrdiff_t>(ends[i]);
            if (std::any_of(first, last, [](const pollfd& one) { return one.revents != 0; })) {
                children[i]->transfer();
            }
            at = ends[i];
        }
    }
    return true;
}

}  // namespace finch::process
