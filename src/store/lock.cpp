#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"
#include "finch/base/log.hpp"
#include "finch/store/run_directory.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace finch::store {
namespace {

constexpr double heartbeat_seconds = 10;
constexpr double silent_seconds = 60;  ///< a holder that was silent for so long is dead

enum class Grip { taken, refused, unsupported };

Grip grip(int file) {
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (::fcntl(file, F_OFD_SETLK, &whole) == 0) {
        return Grip::taken;
    }
    return errno == EAGAIN || errno == EACCES ? Grip::refused : Grip::unsupported;
}

std::string host() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
}

/// Who holds the lock, as the file says it: "job 17, host n1, process 4242".
struct Holder {
    std::string job;
    std::string host;
    long process = 0;
    double age = 0;  ///< seconds since its last sign of life

    [[nodiscard]] std::string text() const {
        return fmt::format("{}host {}, process {}", job.empty() ? "" : "job " + job + ", ", host, process);
    }
};

Holder read_holder(int file) {
    std::array<char, 600> text{};
    std::array<char, 256> job{};
    std::array<char, 256> name{};
    Holder holder;
    if (::pread(file, text.data(), text.size() - 1, 0) > 0 &&
        std::sscanf(text.data(), "job=%255[^\n]\nhost=%255[^\n]\nprocess=%ld", job.data(), name.data(),
                    &holder.process) == 3) {
        holder.job = std::string(job.data()) == "-" ? "" : job.data();
        holder.host = name.data();
    }
    struct stat facts {};
    if (::fstat(file, &facts) == 0) {
        holder.age = unix_seconds() - static_cast<double>(facts.st_mtime);
    }
    return holder;
}

/// Where the file system has no locks: whether the holder that the file names is alive for all that can be seen.
bool lives(const Holder& holder, const std::string& job) {
    const bool same_job = !job.empty() && holder.job == job;
    if (holder.host.empty() || same_job || holder.age > silent_seconds) {
        return false;
    }
    return holder.host != host() || ::kill(static_cast<pid_t>(holder.process), 0) == 0 || errno == EPERM;
}

void write_holder(int file, const std::string& job) {
    const std::string text = fmt::format("job={}\nhost={}\nprocess={}\n", job.empty() ? "-" : job, host(), ::getpid());
    if (::ftruncate(file, 0) != 0 || ::pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
        throw_errno("write the lock");
    }
}

}  // namespace

class RunLock::Implementation {
public:
    Implementation(const RunDirectory& directory, std::string job_id)
        : path_(directory.lock()),
          job_(std::move(job_id)),
          file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
        if (!file_) {
            throw_errno(path_.string());
        }
        const Grip got = grip(file_.get());
        const Holder holder = read_holder(file_.get());
        if (got == Grip::refused || (got == Grip::unsupported && lives(holder, job_))) {
            throw ConfigError(fmt::format(
                "{}: this run is in use ({}); wait for that job, or choose another run directory with --run",
                directory.root().string(), holder.text()));
        }
        if (got == Grip::unsupported) {
            spdlog::warn("{}: no file locks here; a sign of life every {} s guards the run", path_.string(),
                         heartbeat_seconds);
        }
        write_holder(file_.get(), job_);
        last_ = steady_seconds();
    }
    ~Implementation() { static_cast<void>(::ftruncate(file_.get(), 0)); }
    Implementation(const Implementation&) = delete;
    Implementation& operator=(const Implementation&) = delete;

    void heartbeat() {
        if (steady_seconds() - last_ >= heartbeat_seconds) {
            last_ = steady_seconds();
            ::futimens(file_.get(), nullptr);
        }
    }

private:
    std::filesystem::path path_;
    std::string job_;
    FileDescriptor file_;
    double last_ = 0;
};

RunLock::RunLock(const RunDirectory& directory, const std::string& job_id)
    : implementation_(std::make_unique<Implementation>(directory, job_id)) {}

RunLock::~RunLock() = default;

void RunLock::heartbeat() {
    implementation_->heartbeat();
}

bool is_locked(const RunDirectory& directory) {
    const FileDescriptor file(::open(directory.lock().c_str(), O_RDWR | O_CLOEXEC));
    if (!file) {
        return false;
    }
    switch (grip(file.get())) {
        case Grip::taken:
            return false;
        case Grip::refused:
            return true;
        case Grip::unsupported:
            return lives(read_holder(file.get()), "");
    }
    return false;
}

}  // namespace finch::store
