#pragma once

#include "finch/island/journal.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/journal.hpp"
#include "finch/store/run_directory.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace finch::run {

/// A leader's journal on disk. The file is opened at the first write, so open errors are handled like write errors.
class FileJournal : public island::Journal {
public:
    FileJournal(std::filesystem::path path, std::uint64_t run, double sync_seconds)
        : path_(std::move(path)), run_(run), sync_seconds_(sync_seconds) {}
    void write(const Bytes& record) override;
    void sync(bool now) override;
    void forget(std::uint64_t records) override;
    /// Empties the journal. Requires that a synced archive contains all written records.
    void forget_all();

private:
    std::filesystem::path path_;
    std::uint64_t run_;
    double sync_seconds_;
    std::optional<store::Journal> journal_;
};

/// The archive population.h5, written by world rank 0. This class also writes the heartbeat of the run's lock.
class FileArchive : public island::Archive {
public:
    using Written = std::function<void(const search::Population&, const store::ArchiveFacts&)>;
    /// Calls `written` after each write of the archive, with the archived population and facts.
    FileArchive(const store::RunDirectory& directory, const search::Space& space, store::ArchiveFacts facts,
                store::RunLock& lock, Written written);

    void event(const search::Event& event) override;
    void report(const search::WorkerReport& report) override;
    /// Throws LockLost, like report().
    bool write(const search::Population& population) override;
    [[nodiscard]] std::vector<search::Id> curves_kept() const override { return curves_kept_; }
    /// Copies the archive to its predecessor. After a failure, is_current() is false.
    void complete_previous();
    /// Sets the run's state for the next write.
    void set_state(RunState state) { facts_.state = state; }
    /// True if the last write(), and complete_previous() after it, succeeded.
    [[nodiscard]] bool is_current() const noexcept { return is_current_; }
    [[nodiscard]] const store::ArchiveFacts& facts() const noexcept { return facts_; }

private:
    const store::RunDirectory& directory_;
    const search::Space& space_;
    store::ArchiveFacts facts_;
    store::RunLock& lock_;
    double began_;  ///< steady_seconds() at construction
    Written written_;
    bool is_current_ = false;
    std::vector<search::Id> curves_kept_;
    std::vector<search::Id> curves_in_newest_;  ///< in memory during the last write
};

}  // namespace finch::run
