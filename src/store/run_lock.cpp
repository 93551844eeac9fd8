// One writer per run directory: an fcntl lock, and a heartbeat, since fcntl locks may work within one node only.
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
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace finch::store {
namespace {

namespace fs = std::filesystem;

constexpr double most_silence_seconds = 60;  // of a holder on another machine, while it is watched
constexpr double watched_seconds = 20;       // of a lock that is only checked: two heartbeats
constexpr double patience_seconds = 180;     // a file server keeps a dead client's locks for 90 s
constexpr double ending_seconds = 5;         // a process of this host may be about to end, since its peer died
constexpr double look_seconds = 1;
constexpr double quiet_seconds = 0.2;

/// The contents of the lock file.
struct Holder {
    std::string job;
    std::string host;
    std::string machine;  ///< this_machine() of its process; empty in locks of earlier versions
    pid_t process = 0;
    std::string token;  ///< differs each time the lock is taken
    /// The file's modification time. This time is compared only with later modification times of the same file, since
    /// clocks may differ.
    timespec changed{};
    bool has_kernel_lock = false;

    [[nodiscard]] bool is_as(const Holder& before) const {
        return token == before.token && changed.tv_sec == before.changed.tv_sec &&
               changed.tv_nsec == before.changed.tv_nsec;
    }
};

/// Identifies this machine by the kernel's boot id and the PID namespace: several hosts may have the same name.
std::string this_machine() {
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string boot;
    std::getline(in, boot);
    std::error_code none;
    const std::string processes = fs::read_symlink("/proc/self/ns/pid", none).string();
    return boot.empty() || processes.empty() ? "" : boot + " " + processes;
}

Holder this_process(const std::string& job) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    return {job, host, this_machine(), ::getpid(), "", {}, false};
}

std::string text_of(const Holder& holder) {
    return fmt::format("job {}\nhost {}\nmachine {}\nprocess {}\nkernel_lock {}\nheartbeat {}\n", holder.job,
                       holder.host, holder.machine, holder.process, holder.has_kernel_lock ? "yes" : "no",
                       holder.token);
}

/// Reads the lock file. Returns nothing if reading fails, with the reason in errno.
std::optional<Holder> read_holder(const fs::path& path) {
    std::string problem;
    struct stat about {};
    const FileDescriptor file = open_regular(path, O_RDONLY | O_NOFOLLOW, problem, &about);
    char text[4096];
    const ssize_t size = file ? retry([&] { return ::read(file.get(), text, sizeof text); }) : -1;
    if (size < 0) {
        return std::nullopt;
    }
    Holder holder;
    holder.changed = about.st_mtim;
    std::istringstream in(std::string(text, static_cast<std::size_t>(size)));
    for (std::string line; std::getline(in, line);) {
        const std::size_t space = std::min(line.find(' '), line.size());
        const std::string key = line.substr(0, space);
        const std::string value = space < line.size() ? line.substr(space + 1) : "";
        if (key == "job") {
            holder.job = value;
        } else if (key == "host") {
            holder.host = value;
        } else if (key == "machine") {
            holder.machine = value;
        } else if (key == "process") {
            holder.process = static_cast<pid_t>(std::strtol(value.c_str(), nullptr, 10));
        } else if (key == "kernel_lock") {
            holder.has_kernel_lock = value == "yes";
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

/// Calls fcntl for the whole file with `command` (F_OFD_SETLK or F_OFD_GETLK). An OFD lock belongs to this open file
/// description: if this process opens and closes the file elsewhere, the lock stays. Errors are in errno.
bool lock_call(int file, int command, short type, struct flock& lock) {
    lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return ::fcntl(file, command, &lock) == 0;
}

bool has_no_locks(int code) {
    return code == ENOLCK || code == ENOTSUP || code == EOPNOTSUPP || code == ENOSYS || code == EINVAL;
}

/// True if a process of this host is a zombie: it has ended, but its parent has not waited for it.
bool is_zombie(pid_t process) {
    std::ifstream in(fmt::format("/proc/{}/stat", process));
    std::string line;
    std::getline(in, line);
    const std::size_t end = line.rfind(") ");  // end of the program's name, which may contain anything
    return end != std::string::npos && end + 2 < line.size() && line[end + 2] == 'Z';
}

bool is_here(const Holder& holder, const Holder& me) {
    return holder.machine.empty() || me.machine.empty() ? holder.host == me.host : holder.machine == me.machine;
}

bool lives_here(const Holder& holder, const Holder& me) {
    return is_here(holder, me) && (::kill(holder.process, 0) == 0 || errno == EPERM) && !is_zombie(holder.process);
}

/// True if `path` still names the open `file`: another start may have replaced the file.
bool is_named(int file, const fs::path& path) {
    struct stat open {};
    struct stat named {};
    return ::fstat(file, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
}

/// The state of a holder without a kernel lock, as far as a single check can tell.
enum class Life { none, here, maybe_elsewhere };

/// Returns whether the holder of a lock is alive. `is_free` means that no process has an fcntl lock on the file. If the
/// file is free, but the holder had an fcntl lock on this machine, a process with its PID is a different process. For
/// example, a container was restarted, or this directory is a copy of a running run's directory.
Life life_of(const Holder& holder, const Holder& me, bool is_free) {
    const bool has_ended = is_free && holder.has_kernel_lock && !holder.machine.empty() && is_here(holder, me);
    return holder.token.empty() || has_ended ? Life::none
           : !is_here(holder, me)            ? Life::maybe_elsewhere
           : lives_here(holder, me)          ? Life::here
                                             : Life::none;
}

void pause_for(const LockOptions& options, double seconds) {
    if (options.pause) {
        options.pause(seconds);
    } else {
        ::usleep(static_cast<useconds_t>(seconds * 1e6));
    }
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
        if (!options_.host.empty()) {
            me_.host = me_.machine = options_.host;
        }
        double waited = 0;
        while (const std::optional<Holder> holder = holder_or_take()) {
            if (waited >= patience_for(*holder)) {
                throw ConfigError(
                    fmt::format("the run directory {} is in use by {}; wait for it, or give this run another one with "
                                "--run",
                                directory.root().string(), name_of(*holder)));
            }
            if (waited == 0) {
                spdlog::info("{}: {} still seems to hold it; waiting until it ends or gives no sign of life for {} s",
                             path_.string(), name_of(*holder), most_silence_seconds);
            }
            pause(look_seconds);
            waited += look_seconds;
            silence_ += look_seconds;
        }
        next_beat_ = steady_seconds() + options_.beat_seconds;
    }
    /// Empties the lock file instead of removing it. If another process has replaced the file, its new file does not
    /// change.
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
    void pause(double seconds) const { pause_for(options_, seconds); }

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

    /// Takes the lock, or returns its holder if another process has it.
    std::optional<Holder> holder_or_take() {
        const FileDescriptor old = open_lock();
        struct flock lock {};
        const bool is_asked = options_.kind == LockKind::automatic;
        const bool is_granted = is_asked && lock_call(old.get(), F_OFD_SETLK, F_WRLCK, lock);
        const bool is_held = is_asked && !is_granted && !has_no_locks(errno);
        // The lock file is read by name: the last owner of the lock may have put another file there.
        const Holder holder = read_holder(path_).value_or(Holder{});
        if (!seen_ || !holder.is_as(*seen_)) {
            gave_sign_ = seen_.has_value();
            seen_ = holder;
            silence_ = 0;
        }
        const Life life = life_of(holder, me_, is_granted && is_named(old.get(), path_));
        const bool is_silent = life != Life::here && silence_ >= most_silence_seconds;
        const bool is_free = is_held ? is_of_this_job(holder) && is_silent : life == Life::none || is_silent;
        is_watched_ = life == Life::maybe_elsewhere && !is_held && !gave_sign_;
        return is_free ? take() : std::optional(holder);
    }

    /// Returns the time in seconds to wait for the holder to end.
    [[nodiscard]] double patience_for(const Holder& holder) const {
        return lives_here(holder, me_) ? ending_seconds : is_watched_ || is_of_this_job(holder) ? patience_seconds : 0;
    }

    /// Replaces the lock file by a file of this process. If several processes do this at the same time, the last one
    /// wins. The other processes then read the winner's token and return the winner as the holder.
    std::optional<Holder> take() {
        me_.token = new_token();
        const fs::path beside = path_.string() + "." + me_.token;
        FileDescriptor file = make_file(beside);
        struct flock lock {};
        // Some file systems have no fcntl locks.
        me_.has_kernel_lock =
            file && options_.kind == LockKind::automatic && lock_call(file.get(), F_OFD_SETLK, F_WRLCK, lock);
        const std::string text = text_of(me_);
        const bool is_written =
            file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
        if (!is_written || retry([&] { return ::rename(beside.c_str(), path_.c_str()); }) != 0) {
            const int code = errno;
            ::unlink(beside.c_str());
            errno = code;
            throw_storage("cannot write " + path_.string());
        }
        file_ = std::move(file);
        pause(quiet_seconds);
        is_watched_ = false;  // another process that has replaced it is alive
        const Holder now = read_holder(path_).value_or(Holder{});
        return now.token == me_.token ? std::nullopt : std::optional(now);
    }

    fs::path path_;
    Holder me_;
    LockOptions options_;
    FileDescriptor file_;
    double next_beat_ = 0;
    std::optional<Holder> seen_;  ///< at the last check, while waiting for the lock
    double silence_ = 0;          ///< seconds without a change of `seen_`
    bool gave_sign_ = false;      ///< it has changed while it was watched
    bool is_watched_ = false;     ///< its holder is on another machine: only watching shows if it is alive
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

std::vector<bool> are_locked(const std::vector<RunDirectory>& directories, const LockOptions& options) {
    const Holder me = this_process("");
    std::vector<bool> locked;
    std::map<std::size_t, Holder> watched;
    for (const RunDirectory& directory : directories) {
        std::string problem;
        const FileDescriptor file = open_regular(directory.lock(), O_RDONLY | O_NOFOLLOW, problem);
        const bool is_closed = !file && errno == EACCES;
        struct flock lock {};
        const bool is_answered = file && lock_call(file.get(), F_OFD_GETLK, F_RDLCK, lock);
        const bool is_kept = is_answered && lock.l_type != F_UNLCK;
        const Holder holder = read_holder(directory.lock()).value_or(Holder{});
        const Life life = life_of(holder, me, is_answered && !is_kept && is_named(file.get(), directory.lock()));
        if (!is_kept && life == Life::maybe_elsewhere) {
            watched.emplace(locked.size(), holder);
        }
        locked.push_back(is_closed || is_kept || life == Life::here);
    }
    for (double waited = 0; !watched.empty() && waited < watched_seconds; waited += look_seconds) {
        pause_for(options, look_seconds);
        std::erase_if(watched, [&](const auto& entry) {
            const auto now = read_holder(directories[entry.first].lock());
            locked[entry.first] = now && !now->token.empty() && !now->is_as(entry.second);
            return !now || !now->is_as(entry.second);
        });
    }
    return locked;
}

bool is_locked(const RunDirectory& directory, const LockOptions& options) {
    return are_locked({directory}, options).front();
}

}  // namespace finch::store
