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

constexpr double most_silence_seconds = 60;  // of a holder elsewhere, while it is watched
constexpr double watched_seconds = 20;       // of a lock that is looked at only: two beats
constexpr double patience_seconds = 180;     // a file server keeps a dead client's locks for 90 s
constexpr double ending_seconds = 5;         // a process of this host may be about to end: its peer has died
constexpr double look_seconds = 1;
constexpr double quiet_seconds = 0.2;

/// What the lock's file says.
struct Holder {
    std::string job;
    std::string host;
    std::string machine;  ///< this_machine() of its process; empty in locks of earlier programs
    pid_t process = 0;
    std::string token;  ///< of one holding of the lock
    /// When the file changed. Compared only with a later value of its own, since clocks may differ.
    timespec changed{};
    bool has_kernel_lock = false;

    [[nodiscard]] bool is_as(const Holder& before) const {
        return token == before.token && changed.tv_sec == before.changed.tv_sec &&
               changed.tv_nsec == before.changed.tv_nsec;
    }
};

/// The kernel's boot id and the namespace of process ids: several hosts may have one name.
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

/// Nothing if the file cannot be read, with the reason in errno.
std::optional<Holder> read_holder(const fs::path& path) {
    std::string problem;
    const FileDescriptor file = open_regular(path, O_RDONLY | O_NOFOLLOW, problem);
    char text[4096];
    const ssize_t size = file ? retry([&] { return ::read(file.get(), text, sizeof text); }) : -1;
    struct stat about {};
    if (size < 0 || ::fstat(file.get(), &about) != 0) {
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

/// Whether a process of this host has ended and only waits for its parent to hear of it.
bool is_zombie(pid_t process) {
    std::ifstream in(fmt::format("/proc/{}/stat", process));
    std::string line;
    std::getline(in, line);
    const std::size_t end = line.rfind(") ");  // of the program's name, which may hold anything
    return end != std::string::npos && end + 2 < line.size() && line[end + 2] == 'Z';
}

bool is_here(const Holder& holder, const Holder& me) {
    return holder.machine.empty() || me.machine.empty() ? holder.host == me.host : holder.machine == me.machine;
}

bool lives_here(const Holder& holder, const Holder& me) {
    return is_here(holder, me) && (::kill(holder.process, 0) == 0 || errno == EPERM) && !is_zombie(holder.process);
}

/// Whether `path` names the open `file` still: another start may have put its own there.
bool is_named(int file, const fs::path& path) {
    struct stat open {};
    struct stat named {};
    return ::fstat(file, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
}

/// Of a lock that the kernel does not keep: whether its holder is alive nevertheless, as far as one look tells.
enum class Life { none, here, maybe_elsewhere };

/// `is_free`: the kernel knows of no lock. If the holder had one on this machine, a process with its number is another:
/// of a container's next start, say, or the one that holds what this is a copy of.
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

    /// Takes the lock, or says who has it.
    std::optional<Holder> holder_or_take() {
        const FileDescriptor old = open_lock();
        struct flock lock {};
        const bool is_asked = options_.kind == LockKind::automatic;
        const bool is_granted = is_asked && lock_call(old.get(), F_OFD_SETLK, F_WRLCK, lock);
        const bool is_held = is_asked && !is_granted && !has_no_locks(errno);
        // By name: the last owner of the lock may have put another file there.
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

    /// How long its end is waited for.
    [[nodiscard]] double patience_for(const Holder& holder) const {
        return lives_here(holder, me_) ? ending_seconds : is_watched_ || is_of_this_job(holder) ? patience_seconds : 0;
    }

    /// Puts a file of our own in the lock's place. The last of several that do so at the same moment wins; the others
    /// find another's token a moment later, and return its owner.
    std::optional<Holder> take() {
        me_.token = new_token();
        const fs::path beside = path_.string() + "." + me_.token;
        FileDescriptor file = make_file(beside);
        struct flock lock {};
        // Some file systems have none.
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
        is_watched_ = false;  // should it be another's by now, that one lives
        const Holder now = read_holder(path_).value_or(Holder{});
        return now.token == me_.token ? std::nullopt : std::optional(now);
    }

    fs::path path_;
    Holder me_;
    LockOptions options_;
    FileDescriptor file_;
    double next_beat_ = 0;
    std::optional<Holder> seen_;  ///< at the last look, while the lock is waited for
    double silence_ = 0;          ///< seconds for which it has stayed the same
    bool gave_sign_ = false;      ///< it has changed while it was watched
    bool is_watched_ = false;     ///< its holder is elsewhere, so only watching shows whether it lives
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
