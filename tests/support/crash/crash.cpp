// A library for LD_PRELOAD. At the n-th change of a file below a folder, it kills the process or lets the call fail.
//
//   CRASH_FOLDER  absolute path; calls on files outside of this folder are not affected
//   CRASH_RANK    the MPI rank that is affected
//   CRASH_AT      n, from 1; 0: calls are only counted
//   CRASH_MODE    before, half, after: SIGKILL before the call, after half of a write, after the call;
//                 the name of an error, such as ENOSPC: the call fails with this error
//   CRASH_SPAN    number of calls that fail, from the n-th on; 0: all
//   CRASH_COUNT   a file to which a normal process exit writes the number of calls and their names; "unlink!" is a call
//                 that failed because the file does not exist
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace {

struct Plan {
    std::string folder;
    std::string mode;
    long at = 0;
    long span = 1;
    bool is_meant = false;
};

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

const Plan& plan() {
    static const Plan read = [] {
        Plan plan;
        plan.folder = variable("CRASH_FOLDER");
        plan.mode = variable("CRASH_MODE");
        plan.at = std::atol(variable("CRASH_AT").c_str());
        plan.span = std::atol(variable("CRASH_SPAN").c_str());
        const std::string rank = variable("OMPI_COMM_WORLD_RANK");
        plan.is_meant = !plan.folder.empty() && (rank.empty() ? "0" : rank) == variable("CRASH_RANK");
        return plan;
    }();
    return read;
}

/// The number and names of the counted calls. Its destructor writes them to CRASH_COUNT.
struct Calls {
    std::string names;
    std::atomic<long> count{0};
    ~Calls();
};
Calls calls;

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_below(const char* path) {
    if (!plan().is_meant || path == nullptr) {
        return false;
    }
    std::string name = path;
    if (name.front() != '/') {
        char here[PATH_MAX];
        name = ::getcwd(here, sizeof here) != nullptr ? std::string(here) + "/" + name : name;
    }
    return name == plan().folder || name.rfind(plan().folder + "/", 0) == 0;
}

bool is_below(int file) {
    if (!plan().is_meant) {
        return false;
    }
    char target[PATH_MAX];
    const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), target, sizeof target - 1);
    if (size <= 0) {
        return false;
    }
    target[size] = '\0';
    return is_below(target);
}

int error_of(const std::string& mode) {
    static const int found = [&mode] {
        int number = EKEYREJECTED;
        for (const char* name = nullptr; number > 0; --number) {
            name = ::strerrorname_np(number);  // null: no error has this number
            if (name != nullptr && name == mode) {
                break;
            }
        }
        return number;
    }();
    return found;
}

[[noreturn]] void end() {
    ::kill(::getpid(), SIGKILL);
    for (;;) {
        ::pause();
    }
}

/// The action for an intercepted call.
enum class Fate { is_ignored, passes, fails, ends_before, ends_half, ends_after };

Fate fate(bool is_counted, const char* name) {
    if (!is_counted) {
        return Fate::is_ignored;
    }
    const long number = ++calls.count;
    calls.names += name;
    calls.names += '\n';
    if (plan().at == 0 || number < plan().at) {
        return Fate::passes;
    }
    if (const int error = error_of(plan().mode); error != 0) {
        const bool fails = plan().span == 0 || number < plan().at + plan().span;
        errno = error;
        return fails ? Fate::fails : Fate::passes;
    }
    return plan().mode == "before" ? Fate::ends_before : plan().mode == "half" ? Fate::ends_half : Fate::ends_after;
}

template <class Call>
auto pass(Fate fate, Call call) -> decltype(call()) {
    if (fate == Fate::fails) {
        return -1;
    }
    if (fate == Fate::ends_before) {
        end();
    }
    const auto result = call();
    if (fate == Fate::ends_half || fate == Fate::ends_after) {
        end();
    }
    if (fate == Fate::passes && result < 0 && errno == ENOENT) {
        calls.names.insert(calls.names.size() - 1, "!");  // before the end of the line
    }
    return result;
}

template <class Write>
ssize_t write_with(Write real, int file, const void* bytes, std::size_t size, const char* name) {
    const Fate what = fate(is_below(file), name);
    const std::size_t part = what == Fate::ends_half ? size / 2 : size;
    return pass(what, [&] { return real(file, bytes, part); });
}

using Open = int (*)(const char*, int, ...);

int open_with(Open real, const char* path, int flags, mode_t mode) {
    return pass(fate((flags & O_CREAT) != 0 && is_below(path), "open"), [&] { return real(path, flags, mode); });
}

mode_t mode_of(int flags, va_list arguments) {
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

Calls::~Calls() {
    const std::string path = variable("CRASH_COUNT");
    if (count == 0 || path.empty()) {  // helper processes of the launcher load this library too
        return;
    }
    if (FILE* out = std::fopen(path.c_str(), "w")) {
        std::fprintf(out, "%ld\n%s", count.load(), names.c_str());
        std::fclose(out);
    }
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t size) {
    static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
    return write_with(real, file, bytes, size, "write");
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
    static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
    const auto write_there = [at](int to, const void* what, size_t count) { return real(to, what, count, at); };
    return write_with(write_there, file, bytes, size, "pwrite");
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
    static const auto real = next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
    const auto write_there = [at](int to, const void* what, size_t count) { return real(to, what, count, at); };
    return write_with(write_there, file, bytes, size, "pwrite64");
}

/// close() may report a failed earlier write (quota, file server), and still closes the file. Only modes with an error
/// count close().
int close(int file) {
    static const auto real = next<int (*)(int)>("close");
    const bool is_counted =
        error_of(plan().mode) != 0 && is_below(file) && (::fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY;
    const Fate what = fate(is_counted, "close");
    const int reason = errno;
    const int closed = real(file);
    if (what == Fate::fails) {
        errno = reason;
        return -1;
    }
    return closed;
}

int open(const char* path, int flags, ...) {
    static const auto real = next<Open>("open");
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_with(real, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
    static const auto real = next<Open>("open64");
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_with(real, path, flags, mode);
}

int fsync(int file) {
    static const auto real = next<int (*)(int)>("fsync");
    return pass(fate(is_below(file), "fsync"), [&] { return real(file); });
}

int fdatasync(int file) {
    static const auto real = next<int (*)(int)>("fdatasync");
    return pass(fate(is_below(file), "fdatasync"), [&] { return real(file); });
}

int ftruncate(int file, off_t size) noexcept {
    static const auto real = next<int (*)(int, off_t)>("ftruncate");
    return pass(fate(is_below(file), "ftruncate"), [&] { return real(file, size); });
}

int futimens(int file, const struct timespec* times) noexcept {
    static const auto real = next<int (*)(int, const struct timespec*)>("futimens");
    return pass(fate(is_below(file), "futimens"), [&] { return real(file, times); });
}

int rename(const char* from, const char* to) noexcept {
    static const auto real = next<int (*)(const char*, const char*)>("rename");
    return pass(fate(is_below(from), "rename"), [&] { return real(from, to); });
}

int link(const char* from, const char* to) noexcept {
    static const auto real = next<int (*)(const char*, const char*)>("link");
    return pass(fate(is_below(from), "link"), [&] { return real(from, to); });
}

int unlink(const char* path) noexcept {
    static const auto real = next<int (*)(const char*)>("unlink");
    return pass(fate(is_below(path), "unlink"), [&] { return real(path); });
}

int remove(const char* path) noexcept {
    static const auto real = next<int (*)(const char*)>("remove");
    return pass(fate(is_below(path), "remove"), [&] { return real(path); });
}

int mkdir(const char* path, mode_t mode) noexcept {
    static const auto real = next<int (*)(const char*, mode_t)>("mkdir");
    return pass(fate(is_below(path), "mkdir"), [&] { return real(path, mode); });
}

/// stat() changes no file, so only modes with an error count stat() and let it fail.
int stat(const char* path, struct stat* about) noexcept {
    static const auto real = next<int (*)(const char*, struct stat*)>("stat");
    const bool is_counted = error_of(plan().mode) != 0 && is_below(path);
    return pass(fate(is_counted, "stat"), [&] { return real(path, about); });
}
}
