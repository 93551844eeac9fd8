#pragma once

#include "finch/base/error.hpp"
#include "finch/search/individual.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace finch::store {

/// The paths of everything that a run writes.
class RunDirectory {
public:
    explicit RunDirectory(std::filesystem::path root) : root_(std::move(root)) {}

    [[nodiscard]] const std::filesystem::path& root() const noexcept { return root_; }
    [[nodiscard]] std::filesystem::path config() const { return root_ / "config.yaml"; }
    [[nodiscard]] std::filesystem::path archive() const { return root_ / "population.h5"; }
    [[nodiscard]] std::filesystem::path state() const { return root_ / "state"; }
    /// Returns the folder of a worker's files. The first 256 workers use state, the next 256 use state/001, then
    /// state/002 …
    [[nodiscard]] std::filesystem::path state_of(int worker) const;
    /// Returns the paths in state and in its subfolders for workers (state/001 and so on), sorted within each folder.
    [[nodiscard]] std::vector<std::filesystem::path> state_files() const;
    [[nodiscard]] std::filesystem::path journal(int worker) const;      ///< state/worker-00000.journal
    [[nodiscard]] std::filesystem::path worker_best(int worker) const;  ///< state/worker-00000-best.h5
    [[nodiscard]] std::filesystem::path training(search::Id id) const;  ///< state/training-ID.h5
    [[nodiscard]] std::filesystem::path repeat(search::Id id) const;    ///< state/repeat-ID.h5
    [[nodiscard]] std::filesystem::path weights(search::Id id) const;   ///< state/weights-ID.h5
    [[nodiscard]] std::filesystem::path after_epoch(search::Id id, std::int64_t epoch) const;  ///< state/epoch-9-ID.h5
    /// Returns the folder with a copy of a program's checkpoint after `epoch`: state/epoch-9-ID.
    [[nodiscard]] std::filesystem::path checkpoint_after_epoch(search::Id id, std::int64_t epoch) const;
    /// Returns the folder in which a program evaluates the individual `id`: evaluations/RESTART.WORKER/SEQUENCE.
    [[nodiscard]] std::filesystem::path evaluation(search::Id id) const;
    /// Returns the path of a file that Finch keeps next to an evaluation's folder:
    /// evaluations/RESTART.WORKER/SEQUENCE.WHAT.
    [[nodiscard]] std::filesystem::path evaluation_file(search::Id id, const std::string& what) const;
    [[nodiscard]] std::filesystem::path evaluations() const { return root_ / "evaluations"; }
    [[nodiscard]] std::filesystem::path end_notes() const { return state() / "end-notes"; }
    /// Returns the individual's id in a path that training() returned; nothing for any other path.
    [[nodiscard]] static std::optional<search::Id> id_of_training(const std::filesystem::path& path);
    /// Returns the individual's id in a path that weights() returned; nothing for any other path.
    [[nodiscard]] static std::optional<search::Id> id_of_weights(const std::filesystem::path& path);
    /// Returns whether after_epoch() or checkpoint_after_epoch() may have returned `path`, or an interrupted write has
    /// left it.
    [[nodiscard]] static bool is_after_epoch(const std::filesystem::path& path);
    [[nodiscard]] std::filesystem::path best_model() const { return root_ / "models" / "best.h5"; }
    [[nodiscard]] std::filesystem::path summary() const { return root_ / "summary.txt"; }
    [[nodiscard]] std::filesystem::path profile() const { return root_ / "profile.json"; }
    [[nodiscard]] std::filesystem::path lock() const { return root_ / "lock"; }

    /// True if a run was started here: an archive, its predecessor, a damaged archive or other remains of a run exist.
    [[nodiscard]] bool holds_a_run() const;
    /// Returns the files in state/ that prove an earlier archive: journals with records, snapshots, weights.
    [[nodiscard]] std::vector<std::filesystem::path> remains() const;
    /// Makes the folders for `workers` workers and checks that files can be written there. Throws ConfigError with the
    /// path and the reason; throws StorageError if the file system fails. Missing permissions are a ConfigError if the
    /// directory is new. `was_made`: it is known that an earlier start has made it.
    void create(int workers = 1, bool was_made = false) const;
    /// Renames the whole folder to "ROOT.1", "ROOT.2" … and returns the new name. If ROOT is a symbolic link, renames
    /// the target folder; the link then leads to a new empty folder.
    std::filesystem::path move_aside() const;

private:
    std::filesystem::path root_;
};

/// The use of the kernel's fcntl locks. `automatic`: an fcntl lock decides whether the run is locked. If the file
/// system has no fcntl locks, or if they work within one node only (Lustre with `localflock`), the heartbeat decides.
/// `heartbeat`: no fcntl locks are used.
enum class LockKind { automatic, heartbeat };

/// Options for tests: a pretended host and machine name, a replacement for sleeping, and the interval of heartbeats.
struct LockOptions {
    LockKind kind = LockKind::automatic;
    std::string host = {};
    std::function<void(double seconds)> pause = {};
    double beat_seconds = 10;
};

/// The error that another process has taken over the run. A process that gets this error must not write any more.
class LockLost : public Error {
public:
    using Error::Error;
};

/// The lock of a run directory. World rank 0 holds the lock: an fcntl lock, and a file that names the process. The
/// holder touches this file regularly as a heartbeat. The lock is free if no fcntl lock is held and the owner is dead:
/// its process on this machine has ended, or it sends no heartbeat for 60 s. Clocks of nodes may differ, so times of
/// two clocks are never compared. A dead node can leave both the fcntl lock and the file behind, so the next start of
/// the same job watches the file for up to three minutes. After 60 s without a heartbeat the new start takes the lock,
/// even if the kernel still holds the dead node's fcntl lock.
class RunLock {
public:
    /// Takes the lock. Throws ConfigError if another process holds the lock; the message names its job, host and
    /// process. `job_id` is empty outside Slurm. Throws StorageError if the file system fails.
    RunLock(const RunDirectory& directory, const std::string& job_id, LockOptions options = {});
    ~RunLock();
    RunLock(const RunLock&) = delete;
    RunLock& operator=(const RunLock&) = delete;
    /// Calls renew() if the last renewal is at least LockOptions::beat_seconds ago. The holder must call heartbeat()
    /// more often than every LockOptions::beat_seconds.
    void heartbeat();
    /// Sends a heartbeat. Throws LockLost if another process has taken the lock. Throws StorageError if the lock file
    /// is missing or cannot be changed.
    void renew();

private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

/// True if a process holds the lock now; this function does not take the lock. If the lock file names another machine
/// and there is no fcntl lock, watches for a heartbeat for up to 20 s. A lock file that this user may not read counts
/// as held.
[[nodiscard]] bool is_locked(const RunDirectory& directory, const LockOptions& options = {});
/// Checks several locks like is_locked(), and watches all of them at the same time.
[[nodiscard]] std::vector<bool> are_locked(const std::vector<RunDirectory>& directories,
                                           const LockOptions& options = {});

}  // namespace finch::store
