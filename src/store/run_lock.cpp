// One writer per run directory: an fcntl lock, or a sign of life where the file system has none.
#include "finch/base/bytes.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"
#include "finch/store/run_directory.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace finch::store {
namespace {

namespace fs = std::filesystem;

constexpr double beat_seconds = 10;
constexpr double most_silence_seconds = 60;

/// What the lock's file says.
struct Holder {
    std::string job;
    std::string host;
    pid_t process = 0;
    std::string token;  ///< of one lock by heartbeat; empty for an fcntl lock
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

Holder read_holder(const fs::path& path) {
    Holder holder;
    std::ifstream in(path);
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

[[noreturn]] void refuse(const RunDirectory& directory, const Holder& holder) {
    throw ConfigError(fmt::format(
        "the run directory {} is in use by {}process {} on {}; wait for it, or give this run another one with --run",
        directory.root().string(), holder.job.empty() ? "" : fmt::format("job {}, ", holder.job), holder.process,
        holder.host.empty() ? "an unknown host" : holder.host));
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
    return ::stat(path.c_str(), &about) == 0
               ? static_cast<double>(about.st_mtim.tv_sec) + 1e-9 * static_cast<double>(about.st_mtim.tv_nsec)
               : 0;
}

/// How long ago the file changed, by the clock that sets such times: a file server's may differ from this host's.
double silence(const fs::path& path) {
    const fs::path probe = fmt::format("{}.probe-{}", path.string(), ::getpid());
    double now = unix_seconds();
    const FileDescriptor file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file && ::write(file.get(), "?", 1) == 1) {
        now = changed(probe);
    }
    ::unlink(probe.c_str());
    return now - changed(path);
}

/// Whether a lock by heartbeat is held by somebody other than `me`, in this or another process.
bool is_alive(const fs::path& path, const Holder& holder, const Holder& me) {
    if (holder.token.empty() || silence(path) > most_silence_seconds) {
        return false;
    }
    if (holder.host == me.host) {
        return ::kill(holder.process, 0) == 0 || errno == EPERM;
    }
    return holder.job.empty() || holder.job != me.job;
}

std::string new_token() {
    std::random_device entropy;
    return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

}  // namespace

class RunLock::Implementation {
public:
    Implementation(const RunDirectory& directory, const std::string& job_id, LockKind kind)
        : path_(directory.lock()), me_(this_process(job_id)) {
        const Holder holder = read_holder(path_);
        if (is_alive(path_, holder, me_)) {
            refuse(directory, holder);
        }
        if (kind == LockKind::heartbeat || !take_from_kernel(directory)) {
            take_by_file(directory);
        }
    }
    ~Implementation() {
        if (file_) {
            static_cast<void>(::ftruncate(file_.get(), 0));
        } else if (read_holder(path_).token == me_.token) {
            ::unlink(path_.c_str());
        }
    }
    Implementation(const Implementation&) = delete;
    Implementation& operator=(const Implementation&) = delete;

    void heartbeat() {
        if (file_ || steady_seconds() < next_beat_) {
            return;
        }
        if (const Holder holder = read_holder(path_); holder.token != me_.token) {
            throw ApiError(fmt::format("{}: job {}, process {} on {} has taken the run over", path_.string(),
                                       holder.job, holder.process, holder.host));
        }
        if (::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0) != 0) {
            throw_errno("cannot renew " + path_.string());
        }
        next_beat_ = steady_seconds() + beat_seconds;
    }

private:
    /// False where the file system has no fcntl locks.
    bool take_from_kernel(const RunDirectory& directory) {
        FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
        if (!file) {
            throw ConfigError(fmt::format("{} cannot be opened: {}", path_.string(), std::strerror(errno)));
        }
        struct flock lock {};
        if (!lock_call(file.get(), F_OFD_SETLK, F_WRLCK, lock)) {
            if (has_no_locks(errno)) {
                return false;
            }
            refuse(directory, read_holder(path_));
        }
        file_ = std::move(file);
        const std::string text = text_of(me_);
        if (::ftruncate(file_.get(), 0) != 0 ||
            ::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
            throw_errno("cannot write " + path_.string());
        }
        return true;
    }

    /// The last of several that rename at the same moment wins; the others find another's token after a moment.
    void take_by_file(const RunDirectory& directory) {
        me_.token = new_token();
        const std::string beside = path_.string() + "." + me_.token;
        std::ofstream(beside) << text_of(me_);
        if (::rename(beside.c_str(), path_.c_str()) != 0) {
            throw_errno("cannot write " + path_.string());
        }
        ::usleep(200000);
        if (const Holder holder = read_holder(path_); holder.token != me_.token) {
            refuse(directory, holder);
        }
    }

    fs::path path_;
    Holder me_;
    FileDescriptor file_;
    double next_beat_ = 0;
};

RunLock::RunLock(const RunDirectory& directory, const std::string& job_id, LockKind kind)
    : implementation_(std::make_unique<Implementation>(directory, job_id, kind)) {}
RunLock::~RunLock() = default;
void RunLock::heartbeat() {
    implementation_->heartbeat();
}

bool is_locked(const RunDirectory& directory) {
    const fs::path path = directory.lock();
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct flock lock {};
    if (file && lock_call(file.get(), F_OFD_GETLK, F_RDLCK, lock) && lock.l_type != F_UNLCK) {
        return true;
    }
    return file && is_alive(path, read_holder(path), this_process(""));
}

}  // namespace finch::store
