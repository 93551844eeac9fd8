#pragma once

#include "finch/base/handle.hpp"
#include "finch/process/program.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

/// Packets between the caller, the fork server and the supervisors, on SOCK_SEQPACKET sockets.
namespace finch::process {

/// A packet from the caller to a supervisor.
struct Order {
    enum class Kind { end, signal };
    Kind kind;
    int signal_number;
    double grace_seconds;
};

/// The last packet that the caller receives: from a supervisor, or from the fork server in place of a supervisor.
struct Report {
    int code;
    int signal;
    int cut_off;
    double ended_at;                ///< Unix seconds; 0: not known
    std::array<char, 256> problem;  ///< ends with '\0'
};

/// A packet from the caller to the fork server. Request::start carries descriptors.
enum class Request : char { start, kill_all };

/// The descriptors that a supervisor needs.
struct Start {
    FileDescriptor program;  ///< a memfd, see write_program()
    FileDescriptor input;
    FileDescriptor output;
    FileDescriptor errors;
    FileDescriptor control;
};

/// Sends a packet. Does not block. Returns true if the peer exists and the packet was queued.
bool send_bytes(const FileDescriptor& socket, std::span<const std::byte> bytes) noexcept;
enum class Received { packet, nothing, end_of_file };
/// Receives a packet of the size of `bytes`. Does not block.
Received receive_bytes(const FileDescriptor& socket, std::span<std::byte> bytes) noexcept;

template <class Packet>
bool send_packet(const FileDescriptor& socket, const Packet& packet) noexcept {
    return send_bytes(socket, std::as_bytes(std::span(&packet, 1)));
}
template <class Packet>
Received receive_packet(const FileDescriptor& socket, Packet& packet) noexcept {
    return receive_bytes(socket, std::as_writable_bytes(std::span(&packet, 1)));
}

[[nodiscard]] Report report_of(const Ended& ended, double ended_at = 0);
[[nodiscard]] Ended ended_of(const Report& report);

/// Sends a start request. Returns true if the fork server exists and the request was queued. May block while the queue
/// is full.
[[nodiscard]] bool send_start(const FileDescriptor& socket, const Start& start);
/// Waits for a request, and fills `start` for Request::start. Returns nothing at the end of file.
[[nodiscard]] std::optional<Request> receive_request(const FileDescriptor& socket, Start& start);

/// Writes the program's folder, arguments, environment and CPUs to a memfd, which has room for any environment. Throws
/// ApiError.
[[nodiscard]] FileDescriptor write_program(const Program& program);

/// A program in the form that exec needs, mapped from the memfd.
class ProgramImage {
public:
    /// Throws ApiError.
    explicit ProgramImage(const FileDescriptor& memory);
    ~ProgramImage();
    ProgramImage(const ProgramImage&) = delete;
    ProgramImage& operator=(const ProgramImage&) = delete;

    [[nodiscard]] const char* folder() const { return folder_; }
    [[nodiscard]] char* const* arguments() const { return arguments_.data(); }
    [[nodiscard]] char* const* environment() const { return environment_.data(); }
    /// Returns a mask for sched_setaffinity(2); empty: the program keeps the caller's CPUs.
    [[nodiscard]] std::span<const unsigned long> cpu_mask() const { return cpu_mask_; }

private:
    std::span<char> bytes_;
    const char* folder_ = nullptr;
    std::vector<char*> arguments_;
    std::vector<char*> environment_;
    std::vector<unsigned long> cpu_mask_;
};

}  // namespace finch::process
