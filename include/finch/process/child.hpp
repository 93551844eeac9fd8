#pragma once

#include "finch/base/handle.hpp"
#include "finch/process/output.hpp"
#include "finch/process/program.hpp"

#include <cstddef>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace finch::process {

/// The caller's ends of the pipes and of the control socket to one program and its supervisor.
struct Channels {
    FileDescriptor input;
    FileDescriptor input_reader;  ///< its read end: while this process holds it, no write raises SIGPIPE
    FileDescriptor output;
    FileDescriptor errors;
    FileDescriptor control;
};

/// One started program. No function blocks. The program may block on its output while 1 MiB of lines waits to be taken.
///
/// If a Child is destroyed before its program has ended, the program and all of its descendants are ended, as by end()
/// with a grace of 2 s.
class Child {
public:
    /// Called by Launcher::start().
    Child(Channels channels, std::size_t output_bytes);
    /// Represents a program that could not be started.
    explicit Child(Ended ended);

    /// Returns the complete lines of standard output since the last call. Includes an incomplete last line once the
    /// program has ended or closed its output. See LineSplitter.
    [[nodiscard]] std::vector<std::string> take_lines();

    /// Queues bytes for standard input and writes as many as the pipe accepts. transfer() writes the rest later. It is
    /// no error if the program never reads its standard input.
    void write(std::string_view bytes);
    /// Closes standard input after the queued bytes.
    void close_input();

    /// Sends TERM to the program and all of its descendants, and KILL after `grace_seconds` to all that are still
    /// alive. After several calls, the earliest deadline holds.
    void end(double grace_seconds);
    /// Sends a signal to the program's process group only. After signal(), descendants that outlive the program may run
    /// until end().
    void signal(int number);
    /// Returns how the program ended, once the program and all of its descendants are gone; nothing before. Descendants
    /// that outlive the program get TERM once none of them holds the program's standard output or standard error, at
    /// the latest after 1 s. KILL follows 2 s after TERM. take_lines() still returns the remaining lines.
    [[nodiscard]] std::optional<Ended> ended();
    /// Returns when the program itself ended, in Unix seconds; 0 if that is not known.
    [[nodiscard]] double ended_at() const noexcept { return ended_at_; }

    /// Return the kept part of standard output and of standard error so far.
    [[nodiscard]] std::string output() const { return output_.text(); }
    [[nodiscard]] std::string errors() const { return errors_.text(); }
    /// Returns the number of bytes of standard output and standard error so far.
    [[nodiscard]] std::size_t bytes() const noexcept { return output_.total() + errors_.total(); }

    /// True if there are lines to take or the program has ended, as of the last transfer().
    [[nodiscard]] bool has_something() const noexcept { return lines_.has_lines() || ended_.has_value(); }
    /// Appends the descriptors that poll(2) must watch so that transfer() can make progress.
    void add_descriptors(std::vector<pollfd>& descriptors) const;
    /// Reads from and writes to all pipes without blocking. Reads at most 1 MiB per pipe.
    void transfer();

private:
    void send_input();
    void read_output(std::size_t most);
    void read_errors(std::size_t most);
    void receive_report();
    void finish(Ended ended);

    Channels channels_;
    std::string input_;  ///< queued
    std::size_t input_sent_ = 0;
    bool input_closing_ = false;
    LineSplitter lines_;
    KeptText output_;
    KeptText errors_;
    std::optional<Ended> ended_;
    double ended_at_ = 0;
};

/// Waits until a child has lines or has ended, `seconds` pass, or a signal handler runs. Returns true if a child has
/// lines or has ended. Once a child has ended, wait_for_any() always returns true.
bool wait_for_any(std::span<Child* const> children, double seconds);

}  // namespace finch::process
