#include "finch/cluster/end_notes.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace finch::cluster {
namespace {

/// The part of the file that belongs to one rank.
struct Cell {
    std::uint32_t magic = 0;
    std::uint32_t restart = 0;
    std::int32_t worker = 0;
    ExitCause kind = ExitCause::none;
};
static_assert(sizeof(Cell) == 16);
constexpr std::uint32_t magic = 0x444E4546;  // "FEND"

constexpr std::array fatal_signals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

/// The data of the signal handlers, written once before the handlers are installed.
struct Note {
    int file = -1;
    off_t offset = 0;
    Cell cell;
    std::array<struct sigaction, fatal_signals.size()> before{};
};
Note note;
std::atomic<bool> has_noted{true};
static_assert(std::atomic<bool>::is_always_lock_free);

/// Writes the end note, then restores the previous action and raises the signal again.
extern "C" void finch_on_fatal_signal(int signal) {
    note_end(ExitCause::own_fault);
    for (std::size_t i = 0; i < fatal_signals.size(); ++i) {
        if (fatal_signals[i] == signal) {
            ::sigaction(signal, &note.before[i], nullptr);
        }
    }
    ::raise(signal);
}

}  // namespace

void keep_end_notes(const std::filesystem::path& path, int rank, std::uint32_t restart, std::int32_t worker) {
    std::string problem;
    FileDescriptor file = open_regular(path, O_WRONLY | O_CREAT | O_NOFOLLOW, problem);
    if (!file) {
        throw ApiError(fmt::format("cannot open {}: {}", path.string(), problem));
    }
    note.file = file.release();
    note.offset = static_cast<off_t>(sizeof(Cell)) * rank;
    note.cell = {magic, restart, worker, ExitCause::none};
    has_noted = false;
    for (std::size_t i = 0; i < fatal_signals.size(); ++i) {
        struct sigaction action {};
        action.sa_handler = finch_on_fatal_signal;
        action.sa_flags = SA_ONSTACK;
        ::sigemptyset(&action.sa_mask);
        if (::sigaction(fatal_signals[i], &action, &note.before[i]) != 0) {
            throw_errno("sigaction");
        }
    }
}

void note_end(ExitCause kind) noexcept {
    if (has_noted.exchange(true)) {
        return;
    }
    const int code = errno;
    Cell cell = note.cell;
    cell.kind = kind;
    static_cast<void>(::pwrite(note.file, &cell, sizeof cell, note.offset));
    errno = code;
}

std::vector<EndNote> read_end_notes(const std::filesystem::path& path, std::uint32_t restart) {
    std::vector<EndNote> notes;
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat about {};
    if (!file || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return notes;
    }
    Cell cell;
    while (::read(file.get(), &cell, sizeof cell) == static_cast<ssize_t>(sizeof cell)) {
        if (cell.magic == magic && cell.restart == restart && cell.kind != ExitCause::none) {
            notes.push_back({cell.restart, cell.worker, cell.kind});
        }
    }
    return notes;
}

}  // namespace finch::cluster
