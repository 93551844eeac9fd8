// One writer per run directory: an fcntl lock, and a sign of life, since such locks may hold on one node only.
#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"
#include "finch/base/log.hpp"
#include "finch/store/run_directory.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace finch::store {
namespace {

namespace fs = std::filesystem;

constexpr double most_silence_seconds = 60;
constexpr double patience_seconds = 180;  // a file server keeps a dead client's locks for 90 s
constexpr double ending_seconds = 5;      // a process of this host may be about to end: its peer has died
constexpr double look_seconds = 1;
constexpr double settle_seconds = 0.2;

/// What the lock's file says.
struct Holder {
    std::string job;
    std::string host;
    pid_t process = 0;
    std::string token;  ///< of one holding of the lock
};

Holder this_process(const std::string& job) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    return {job, host, ::getpid(), ""};
}

std::string text_of(const Holder& holder) {
    return fmt::format("job {}\nhost {}\nprocess {}\nheartbeat {}\n", holder.job, holder.host, holder.process,
                       holder.token);
}

/// Nothing where the file cannot be read, with the reason in errno.
std::optional<Holder> read_holder(const fs::path& path) {
    std::string problem;
    const FileDescriptor file = open_regular(path, O_RDONLY | O_NOFOLLOW, problem);
    char text[4096];
    const ssize_t size = file ? retry([&] { return ::read(file.get(), text, sizeof text); }) : -1;
    if (size < 0) {
        return std::nullopt;
    }
    Holder holder;
    std::istringstream in(std::string(text, static_cast<std::size_t>(size)));
    for (std::string line; std::getline(in, line);) {
        const std::size_t space = std::min(line.find(' '), line.size());
        const std::string key = line.substr(0, space);
        const std::string value = space < line.size() ? line.substr(space + 1) : "";
        if (key == "job") {
            holder.job = value;
        } else if (key == "host") {
            holder.host = value;
        } else if (key == "process") {
            holder.process = static_cast<pid_t>(std::strtol(value.c_str(), nullptr, 10));
        } else if (key == "heartbeat") {
            holder.token = value;
        }
    }
    return holder;
}

std::string name_of(const Holder& holder) {
    return fmt::format("{}process {} on {}", holder.job.empty() ? "" : fmt::format("job {}, ", holder.job),
                       holder.process, holder.host.empty() ? "an unknown host" : holder.host);
}

/// Tries `command` (F_OFD_SETLK or F_OFD_GETLK) for the whole file. An open file description's lock belongs to nothing
/// else, so that another look at the file in this process does not end it. Errors in errno.
bool lock_call(int file, int command, short type, struct flock& lock) {
    lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return ::fcntl(file, command, &lock) == 0;
}

bool has_no_locks(int code) {
    return code == ENOLCK || code == ENOTSUP || code == EOPNOTSUPP || code == ENOSYS || code == EINVAL;
}

double changed(const fs::path& path) {
    struct stat about {};
    return ::lstat(path.c_str(), &about) == 0
               ? static_cast<double>(about.st_mtim.tv_sec) + 1e-9 * static_cast<double>(about.st_mtim.tv_nsec)
               : 0;
}

/// How long ago the file changed, by the clock that sets such times: a file server's may differ from this host's.
double silence(const fs::path& path) {
    const fs::path probe = fmt::format("{}.probe-{}", path.string(), ::getpid());
    double now = unix_seconds();
    const FileDescriptor file = make_file(probe);
    if (file && ::write(file.get(), "?", 1) == 1) {
        now = changed(probe);
    }
    ::unlink(probe.c_str());
    return now - changed(path);
}

/// Whether a process of this host has ended and only waits for its parent to hear of it.
bool is_zombie(pid_t process) {
    std::ifstream in(fmt::format("/proc/{}/stat", process));
    std::string line;
    std::getline(in, line);
    const std::size_t end = line.rfind(") ");  // of the program's name, which may hold anything
    return end != std::string::npos && end + 2 < line.size() && line[end + 2] == 'Z';
}

bool lives_here(const Holder& holder, const Holder& me) {
    return holder.host == me.host && (::kill(holder.process, 0) == 0 || errno == EPERM) && !is_zombie(holder.process);
}

bool is_silent(const fs::path& path) {
    return silence(path) > most_silence_seconds;
}

/// Whether the file says that somebody holds the lock, in this or another process.
bool is_alive(const fs::path& path, const Holder& holder, const Holder& me) {
    if (holder.token.empty() || is_silent(path)) {
        return false;
    }
    return holder.host != me.host || lives_here(holder, me);
}

std::string new_token() {
    std::random_device entropy;
    return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

}  // namespace

class RunLock::Implementation {
public:
    Implementation(const RunDirectory& directory, const std::string& job_id, LockOptions options)
        : path_(directory.lock()), me_(this_process(job_id)), options_(std::move(options)) {
        me_.host = options_.host.empty() ? me_.host : options_.host;
        double waited = 0;
        while (const std::optional<Holder> holder = holder_or_take()) {
            if (waited >= patience_for(*holder)) {
                throw ConfigError(
                    fmt::format("the run directory {} is in use by {}; wait for it, or give this run another one with "
                                "--run",
                                directory.root().string(), name_of(*holder)));
            }
            if (waited == 0) {
                spdlog::info("{}: {} still seems to hold it; waiting for its end", path_.string(), name_of(*holder));
            }
            pause(look_seconds);
            waited += look_seconds;
        }
        next_beat_ = steady_seconds() + options_.beat_seconds;
    }
    /// Emptied, not removed: should the name be another's by now, nothing happens to it.
    ~Implementation() { static_cast<void>(::ftruncate(file_.get(), 0)); }
    Implementation(const Implementation&) = delete;
    Implementation& operator=(const Implementation&) = delete;

    void heartbeat() {
        if (steady_seconds() >= next_beat_) {
            renew();
        }
    }

    void renew() {
        const std::optional<Holder> holder = read_holder(path_);
        if (!holder) {
            throw_storage("cannot read the run's lock " + path_.string());
        }
        if (holder->token != me_.token) {
            throw LockLost(fmt::format("{}: {} has taken the run over; this one ends and writes nothing more",
                                       path_.string(), name_of(*holder)));
        }
        if (retry([&] { return ::futimens(file_.get(), nullptr); }) != 0) {
            throw_storage("cannot renew " + path_.string());
        }
        next_beat_ = steady_seconds() + options_.beat_seconds;
    }

private:
    void pause(double seconds) const {
        if (options_.pause) {
            options_.pause(seconds);
        } else {
            ::usleep(static_cast<useconds_t>(seconds * 1e6));
        }
    }

    [[nodiscard]] bool is_of_this_job(const Holder& holder) const { return !me_.job.empty() && holder.job == me_.job; }

    FileDescriptor open_lock() const {
        std::string problem;
        FileDescriptor file = open_regular(path_, O_RDWR | O_CREAT | O_NOFOLLOW, problem);
        if (!file) {
            const int code = errno;
            const std::string why = fmt::format("{} cannot be opened: {}", path_.string(), problem);
            if (is_storage_failure(code)) {
                throw StorageError(why);
            }
            throw ConfigError(why);
        }
        return file;
    }

    /// Takes the lock, or says who has it.
    std::optional<Holder> holder_or_take() {
        const FileDescriptor old = open_lock();
        struct flock lock {};
        const bool is_held = options_.kind == LockKind::automatic &&
                             !lock_call(old.get(), F_OFD_SETLK, F_WRLCK, lock) && !has_no_locks(errno);
        // By name: whoever had the lock a moment ago may have put another file there.
        const Holder holder = read_holder(path_).value_or(Holder{});
        if (is_held ? !is_dead_start_of_this_job(holder) : is_alive(path_, holder, me_)) {
            return holder;
        }
        return take();
    }

    /// How long its end is waited for.
    [[nodiscard]] double patience_for(const Holder& holder) const {
        return lives_here(holder, me_) ? ending_seconds : is_of_this_job(holder) ? patience_seconds : 0;
    }

    /// Whether the kernel still keeps the lock of a node that is gone.
    [[nodiscard]] bool is_dead_start_of_this_job(const Holder& holder) const {
        return is_of_this_job(holder) && !holder.token.empty() && !lives_here(holder, me_) && is_silent(path_);
    }

    /// Puts a file of our own in the lock's place. The last of several that do so at the same moment wins; the others
    /// find another's token a moment later, and return its owner.
    std::optional<Holder> take() {
        me_.token = new_token();
        const fs::path beside = path_.string() + "." + me_.token;
        const std::string text = text_of(me_);
        FileDescriptor file = make_file(beside);
        const bool is_written =
            file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
        struct flock lock {};
        if (is_written && options_.kind == LockKind::automatic) {
            static_cast<void>(lock_call(file.get(), F_OFD_SETLK, F_WRLCK, lock));  // some file systems have none
        }
        if (!is_written || retry([&] { return ::rename(beside.c_str(), path_.c_str()); }) != 0) {
            const int code = errno;
            ::unlink(beside.c_str());
            errno = code;
            throw_storage("cannot write " + path_.string());
        }
        file_ = std::move(file);
        pause(settle_seconds);
        const Holder now = read_holder(path_).value_or(Holder{});
        return now.token == me_.token ? std::nullopt : std::optional(now);
    }

    fs::path path_;
    Holder me_;
    LockOptions options_;
    FileDescriptor file_;
    double next_beat_ = 0;
};

RunLock::RunLock(const RunDirectory& directory, const std::string& job_id, LockOptions options)
    : implementation_(std::make_unique<Implementation>(directory, job_id, std::move(options))) {}
RunLock::~RunLock() = default;
void RunLock::heartbeat() {
    implementation_->heartbeat();
}
void RunLock::renew() {
    implementation_->renew();
}

bool is_locked(const RunDirectory& directory) {
    const fs::path path = directory.lock();
    std::string problem;
    const FileDescriptor file = open_regular(path, O_RDONLY | O_NOFOLLOW, problem);
    struct flock lock {};
    if (file && lock_call(file.get(), F_OFD_GETLK, F_RDLCK, lock) && lock.l_type != F_UNLCK) {
        return true;
    }
    const std::optional<Holder> holder = read_holder(path);
    return holder && is_alive(path, *holder, this_process(""));
}

}  // namespace finch::store
