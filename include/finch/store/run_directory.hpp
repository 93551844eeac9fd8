#pragma once

#include "finch/search/individual.hpp"

#include <filesystem>
#include <memory>
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
    /// Where a worker's files are: state, and state/001, state/002 … for each 256 workers beyond the first 256.
    [[nodiscard]] std::filesystem::path state_of(int worker) const;
    /// All of these folders that there are.
    [[nodiscard]] std::vector<std::filesystem::path> state_folders() const;
    [[nodiscard]] std::filesystem::path journal(int worker) const;      ///< state/worker-00000.journal
    [[nodiscard]] std::filesystem::path worker_best(int worker) const;  ///< state/worker-00000-best.h5
    [[nodiscard]] std::filesystem::path training(search::Id id) const;  ///< state/training-ID.h5
    [[nodiscard]] std::filesystem::path best_model() const { return root_ / "models" / "best.h5"; }
    [[nodiscard]] std::filesystem::path lock() const { return root_ / "lock"; }
    [[nodiscard]] std::filesystem::path log() const { return root_ / "log"; }

    /// Whether a run was begun here: there is an archive, a predecessor of one, or a damaged one.
    [[nodiscard]] bool holds_a_run() const;
    /// Makes the folders for so many workers and proves that files can be written there. Throws ConfigError with the
    /// path and the reason.
    void create(int workers = 1) const;
    /// Renames the whole folder to "ROOT.1", "ROOT.2" … and returns the new name.
    std::filesystem::path move_aside() const;

private:
    std::filesystem::path root_;
};

/// How a lock is held: by the kernel, which frees it when its holder dies, or, where the file system has no fcntl
/// locks, by a file whose time of change is a sign of life.
enum class LockKind { automatic, heartbeat };

/// Held by the one process (world rank 0) that may run here. A lock by heartbeat is taken over where its holder is a
/// dead process of this host, has the same job id on another host, or was silent for 60 s.
class RunLock {
public:
    /// Throws ConfigError that says who holds it: job, host, process. `job_id` is empty outside Slurm.
    RunLock(const RunDirectory& directory, const std::string& job_id, LockKind kind = LockKind::automatic);
    ~RunLock();
    RunLock(const RunLock&) = delete;
    RunLock& operator=(const RunLock&) = delete;
    /// Renews the sign of life where the file system has no fcntl locks, every 10 s; to be called more often than that.
    /// Throws ApiError where another process has taken the lock over.
    void heartbeat();

private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

/// Whether somebody holds the lock now, without taking it.
[[nodiscard]] bool is_locked(const RunDirectory& directory);

}  // namespace finch::store
