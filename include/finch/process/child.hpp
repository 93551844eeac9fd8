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

/// The caller's ends of what joins it with one program and its supervisor.
struct Channels {
    FileDescriptor input;
    FileDescriptor input_reader;  ///< the other end of `input`: with a reader in this process, no write raises SIGPIPE
    FileDescriptor output;
    FileDescriptor errors;
    FileDescriptor control;
};

/// One started program. Nothing here blocks. The program may stand still while a MiB of lines waits to be taken.
///
/// If a Child goes before its program has ended, the program and all of its descendants are ended, as end(2) would.
class Child {
public:
    /// Launcher::start() makes them.
    Child(Channels channels, std::size_t output_bytes);
    /// A program that could not be started.
    explicit Child(Ended ended);

    /// Whole lines of standard output since the last call; also an unfinished last one, once the program has ended or
    /// closed its output. See LineSplitter.
    [[nodiscard]] std::vector<std::string> take_lines();

    /// Queues bytes for standard input and sends what the pipe takes; the rest goes whenever the child is looked at. A
    /// program that does not read is no error.
    void write(std::string_view bytes);
    /// The program reads an end of file behind what is queued.
    void close_input();

    /// TERM to the program and all of its descendants, KILL to what is left after `grace_seconds`. Again with a shorter
    /// grace: the sooner deadline holds.
    void end(double grace_seconds);
    /// Sends a signal to the program's process group alone. Descendants that outlive the program have the time from
    /// then on until end().
    void signal(int number);
    /// How the program ended, once it and all of its descendants are gone: what outlives it gets TERM once nothing of
    /// it holds the program's standard output or standard error, but after 1 s at most, and KILL 2 s later. The lines
    /// that came before are still there to be taken.
    [[nodiscard]] std::optional<Ended> ended();
    /// When the program itself ended, in Unix seconds; 0 if that is not known.
    [[nodiscard]] double ended_at() const noexcept { return ended_at_; }

    /// The kept part of standard output and standard error, up to now.
    [[nodiscard]] std::string output() const { return output_.text(); }
    [[nodiscard]] std::string errors() const { return errors_.text(); }

    /// Whether there are lines to take or the program has ended, as far as transfer() has seen.
    [[nodiscard]] bool has_something() const noexcept { return lines_.has_lines() || ended_.has_value(); }
    /// Appends what poll(2) must wait for before transfer() can do something.
    void add_descriptors(std::vector<pollfd>& descriptors) const;
    /// Reads and sends what can be, at most a MiB of each.
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

/// Waits until a child has something (lines, its end), `seconds` pass or a signal is handled. Returns whether one has.
/// A child that has ended has something for ever.
bool wait_for_any(std::span<Child* const> children, double seconds);

}  // namespace finch::process
