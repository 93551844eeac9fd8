#include "messages.hpp"

#include "finch/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace finch::process {
namespace {

constexpr std::size_t descriptor_count = 5;
constexpr std::size_t control_bytes = CMSG_SPACE(descriptor_count * sizeof(int));

struct Counts {
    std::size_t arguments;
    std::size_t environment;
    std::size_t cpus;
};

void append(std::string& text, const std::string& part) {
    text.append(part.c_str(), part.size() + 1);
}

void write_all(const FileDescriptor& file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
        if (count < 0 && errno != EINTR) {
            throw_errno("write to a memfd");
        }
        bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
    }
}

}  // namespace

bool send_bytes(const FileDescriptor& socket, std::span<const std::byte> bytes) noexcept {
    ssize_t count = -1;
    do {
        count = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (count < 0 && errno == EINTR);
    return count >= 0;
}

Received receive_bytes(const FileDescriptor& socket, std::span<std::byte> bytes) noexcept {
    ssize_t count = -1;
    do {
        count = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        // ECONNRESET occurs once if the peer has closed its socket without reading everything. The peer's last packet
        // can still be received.
    } while (count < 0 && (errno == EINTR || errno == ECONNRESET));
    if (count == static_cast<ssize_t>(bytes.size())) {
        return Received::packet;
    }
    return count < 0 && errno == EAGAIN ? Received::nothing : Received::end_of_file;
}

Report report_of(const Ended& ended, double ended_at) {
    Report report{ended.code, ended.signal, ended.cut_off, ended_at, {}};
    ended.problem.copy(report.problem.data(), report.problem.size() - 1);
    return report;
}

Ended ended_of(const Report& report) {
    return {report.code, report.signal, report.problem.data(), report.cut_off};
}

bool send_start(const FileDescriptor& socket, const Start& start) {
    const std::array<int, descriptor_count> descriptors{start.program.get(), start.input.get(), start.output.get(),
                                                        start.errors.get(), start.control.get()};
    Request request = Request::start;
    iovec part{&request, sizeof(request)};
    alignas(cmsghdr) std::array<char, control_bytes> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(descriptors));
    std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(descriptors));
    ssize_t count = -1;
    do {
        count = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
    } while (count < 0 && errno == EINTR);
    return count >= 0;
}

std::optional<Request> receive_request(const FileDescriptor& socket, Start& start) {
    Request request{};
    iovec part{&request, sizeof(request)};
    alignas(cmsghdr) std::array<char, control_bytes> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t count = -1;
    do {
        count = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
    } while (count < 0 && errno == EINTR);
    if (count <= 0) {
        return std::nullopt;
    }
    std::array<int, descriptor_count> descriptors{-1, -1, -1, -1, -1};
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
        std::memcpy(descriptors.data(), CMSG_DATA(header),
                    std::min(header->cmsg_len - CMSG_LEN(0), sizeof(descriptors)));
    }
    start = {FileDescriptor(descriptors[0]), FileDescriptor(descriptors[1]), FileDescriptor(descriptors[2]),
             FileDescriptor(descriptors[3]), FileDescriptor(descriptors[4])};
    return request;
}

FileDescriptor write_program(const Program& program) {
    const Counts counts{program.arguments.size(), program.environment.size(), program.cpus.size()};
    std::string image(reinterpret_cast<const char*>(&counts), sizeof(counts));
    image.append(reinterpret_cast<const char*>(program.cpus.data()), program.cpus.size() * sizeof(int));
    append(image, std::filesystem::absolute(program.folder.empty() ? "." : program.folder).string());
    for (const auto* texts : {&program.arguments, &program.environment}) {
        for (const std::string& text : *texts) {
            append(image, text);
        }
    }
    FileDescriptor memory(::memfd_create("finch-program", MFD_CLOEXEC));
    if (!memory) {
        throw_errno("memfd_create");
    }
    write_all(memory, image);
    return memory;
}

ProgramImage::ProgramImage(const FileDescriptor& memory) {
    struct stat about {};
    ::fstat(memory.get(), &about);
    const auto size = static_cast<std::size_t>(about.st_size);
    void* const begin = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, memory.get(), 0);
    if (begin == MAP_FAILED) {
        throw_errno("mmap of a program");
    }
    bytes_ = {static_cast<char*>(begin), size};
    Counts counts{};
    std::memcpy(&counts, bytes_.data(), sizeof(counts));
    char* next = bytes_.data() + sizeof(counts);
    for (std::size_t i = 0; i < counts.cpus; ++i, next += sizeof(int)) {
        int cpu = 0;
        std::memcpy(&cpu, next, sizeof(cpu));
        constexpr std::size_t bits = std::numeric_limits<unsigned long>::digits;
        const auto bit = static_cast<std::size_t>(cpu);
        cpu_mask_.resize(std::max(cpu_mask_.size(), bit / bits + 1));
        cpu_mask_[bit / bits] |= 1UL << (bit % bits);
    }
    folder_ = std::exchange(next, next + std::strlen(next) + 1);
    const auto fill = [&next](std::vector<char*>& texts, std::size_t count) {
        texts.resize(count + 1);
        for (std::size_t i = 0; i < count; ++i) {
            texts[i] = std::exchange(next, next + std::strlen(next) + 1);
        }
    };
    fill(arguments_, counts.arguments);
    fill(environment_, counts.environment);
}

ProgramImage::~ProgramImage() {
    ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace finch::process
