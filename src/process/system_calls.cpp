#include "system_calls.hpp"

#include "finch/base/error.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace finch::process {
namespace {

Pair owned(const std::array<int, 2>& ends) {
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void close_all_but(const FileDescriptor& kept) {
    std::vector<int> open;
    DIR* const folder = ::opendir("/proc/self/fd");
    if (folder == nullptr) {
        throw_errno("opendir /proc/self/fd");
    }
    while (const dirent* entry = ::readdir(folder)) {
        open.push_back(std::atoi(entry->d_name));
    }
    ::closedir(folder);
    for (const int descriptor : open) {
        if (descriptor > STDERR_FILENO && descriptor != kept.get()) {
            ::close(descriptor);
        }
    }
}

void redirect_standard_descriptors() {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (descriptor != nothing) {
            ::dup2(nothing, descriptor);
        }
    }
}

}  // namespace

Pair make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw_errno("pipe2");
    }
    return owned(ends);
}

Pair make_sockets() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw_errno("socketpair");
    }
    return owned(ends);
}

void set_nonblocking(const FileDescriptor& descriptor) {
    if (::fcntl(descriptor.get(), F_SETFL, O_NONBLOCK) != 0) {
        throw_errno("fcntl F_SETFL");
    }
}

int poll_for(std::span<pollfd> descriptors, double seconds) noexcept {
    constexpr double longest = 1e9;
    const double least = std::clamp(seconds, 0.0, longest);
    const auto whole = static_cast<std::time_t>(least);
    const timespec time{whole, static_cast<long>((least - static_cast<double>(whole)) * 1e9)};
    return ::ppoll(descriptors.data(), descriptors.size(), seconds < 0 ? nullptr : &time, nullptr);
}

void drain_signals(const FileDescriptor& signals) noexcept {
    std::array<signalfd_siginfo, 8> taken;
    while (::read(signals.get(), taken.data(), sizeof(taken)) == sizeof(taken)) {
    }
}

FileDescriptor detach(FileDescriptor& kept, std::span<const int> signals) {
    for (int signal = 1; signal <= SIGRTMAX; ++signal) {
        const auto before = ::signal(signal, SIG_DFL);
        if (signal == SIGHUP && before == SIG_IGN) {
            ::signal(signal, SIG_IGN);  // nohup also applies to the programs
        }
    }
    if (kept.get() <= STDERR_FILENO) {
        kept.reset(::fcntl(kept.get(), F_DUPFD, STDERR_FILENO + 1));
    }
    ::fcntl(kept.get(), F_SETFD, FD_CLOEXEC);
    close_all_but(kept);
    redirect_standard_descriptors();
    if (::chdir("/") != 0) {
        throw_errno("chdir /");
    }
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : signals) {
        ::sigaddset(&set, signal);
    }
    return FileDescriptor(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

}  // namespace finch::process
