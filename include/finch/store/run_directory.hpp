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

/// The names of everything that a run writes. Plain paths.
class RunDirectory {
public:
    explicit RunDirectory(std::filesystem::path root) : root_(std::move(root)) {}

    [[nodiscard]] const std::filesystem::path& root() const noexcept { return root_; }
    [[nodiscard]] std::filesystem::path config() const { return root_ / "config.yaml"; }
    [[nodiscard]] std::filesystem::path archive() const { return root_ / "population.h5"; }
    [[nodiscard]] std::filesystem::path state() const { return root_ / "state"; }
    /// Folder of a worker's files: state, and state/001, state/002 … for each 256 workers beyond the first 256.
    [[nodiscard]] std::filesystem::path state_of(int worker) const;
    /// All of these folders that there are.
    [[nodiscard]] std::vector<std::filesystem::path> state_folders() const;
    [[nodiscard]] std::filesystem::path journal(int worker) const;      ///< state/worker-00000.journal
    [[nodiscard]] std::filesystem::path worker_best(int worker) const;  ///< state/worker-00000-best.h5
    [[nodiscard]] std::filesystem::path training(search::Id id) const;  ///< state/training-ID.h5
    [[nodiscard]] std::filesystem::path repeat(search::Id id) const;    ///< state/repeat-ID.h5
    [[nodiscard]] std::filesystem::path weights(search::Id id) const;   ///< state/weights-ID.h5
    /// The folder of a program that evaluates an individual: evaluations/RESTART.WORKER/SEQUENCE.
    [[nodiscard]] std::filesystem::path evaluation(search::Id id) const;
    /// A file that Finch keeps beside that folder: evaluations/RESTART.WORKER/SEQUENCE.WHAT.
    [[nodiscard]] std::filesystem::path evaluation_file(search::Id id, const std::string& what) const;
    [[nodiscard]] std::filesystem::path evaluations() const { return root_ / "evaluations"; }
    [[nodiscard]] std::filesystem::path end_notes() const { return state() / "end-notes"; }
    /// The individual of a path that training() gave; nothing for any other.
    [[nodiscard]] static std::optional<search::Id> id_of_training(const std::filesystem::path& path);
    /// The individual of a path that weights() gave; nothing for any other.
    [[nodiscard]] static std::optional<search::Id> id_of_weights(const std::filesystem::path& path);
    [[nodiscard]] std::filesystem::path best_model() const { return root_ / "models" / "best.h5"; }
    [[nodiscard]] std::filesystem::path profile() const { return root_ / "profile.json"; }
    [[nodiscard]] std::filesystem::path lock() const { return root_ / "lock"; }

    /// Whether a run was begun here: there is an archive, a predecessor of one, a damaged one, or what remains of one.
    [[nodiscard]] bool holds_a_run() const;
    /// Files in state/ that prove an earlier archive: journals with records, snapshots, weights.
    [[nodiscard]] std::vector<std::filesystem::path> remains() const;
    /// Makes the folders for so many workers and proves that files can be written there. Throws ConfigError with the
    /// path and the reason.
    void create(int workers = 1) const;
    /// Renames the whole folder to "ROOT.1", "ROOT.2" … and returns the new name. Where ROOT is a link, the folder that
    /// it leads to is renamed, and the link leads to an empty one.
    std::filesystem::path move_aside() const;

private:
    std::filesystem::path root_;
};

/// Trust in the kernel's fcntl locks. `automatic`: they count; if the file system has none, or they hold on one node
/// only (Lustre with `localflock`), the heartbeat decides. `heartbeat`: they are not used.
enum class LockKind { automatic, heartbeat };

/// For tests: a pretended name of host and machine, a replacement for sleeping, and when the next sign of life is due.
struct LockOptions {
    LockKind kind = LockKind::automatic;
    std::string host = {};
    std::function<void(double seconds)> pause = {};
    double beat_seconds = 10;
};

/// Another process has taken the run over: nothing may be written any more.
class LockLost : public Error {
public:
    using Error::Error;
};

/// The one process (world rank 0) that may run here holds it: an fcntl lock on a file that names the process. The
/// process changes the file again and again, as a sign of life. The lock is free if the kernel does not keep it and its
/// holder is a dead process of this machine, or gives no sign while it is watched for 60 s: clocks may differ, so no
/// time is compared with another. The same job's next start watches for up to three minutes, since a node that died can
/// leave both behind; after 60 s of silence it takes the lock over even if the kernel keeps the dead node's.
class RunLock {
public:
    /// Throws ConfigError that says who holds it: job, host, process. `job_id` is empty outside Slurm. Throws
    /// StorageError.
    RunLock(const RunDirectory& directory, const std::string& job_id, LockOptions options = {});
    ~RunLock();
    RunLock(const RunLock&) = delete;
    RunLock& operator=(const RunLock&) = delete;
    /// renew() where the last was LockOptions::beat_seconds ago; to be called more often than that.
    void heartbeat();
    /// Gives the sign of life. Throws LockLost, and StorageError if the file is gone or cannot be changed.
    void renew();

private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

/// Whether somebody holds the lock now, without taking it. One that a process elsewhere left or holds is watched for
/// up to 20 s, unless the kernel knows. One that this user may not read counts as held.
[[nodiscard]] bool is_locked(const RunDirectory& directory, const LockOptions& options = {});
/// The same for several, watched at the same time.
[[nodiscard]] std::vector<bool> are_locked(const std::vector<RunDirectory>& directories,
                                           const LockOptions& options = {});

}  // namespace finch::store
