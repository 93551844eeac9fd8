#pragma once

#include "finch/island/journal.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/journal.hpp"
#include "finch/store/run_directory.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace finch::app {

/// A leader's journal on disk.
class FileJournal : public island::Journal {
public:
    FileJournal(const std::filesystem::path& path, std::uint64_t run) : journal_(path, run) {}
    void write(const Bytes& record) override { journal_.write(record); }
    void sync(bool now) override { journal_.sync(now); }
    void forget(std::uint64_t records) override { journal_.forget(records); }
    /// Everything written is in a synced archive.
    void forget_all() { journal_.forget(journal_.written()); }

private:
    store::Journal journal_;
};

/// population.h5, kept by world rank 0, with the sign of life of the run's lock.
class FileArchive : public island::Archive {
public:
    FileArchive(const store::RunDirectory& directory, const search::Space& space, store::ArchiveFacts facts,
                store::RunLock& lock);

    void event(const search::Event& event) override;
    void report(const search::WorkerReport& report) override;
    bool write(const search::Population& population) override;
    [[nodiscard]] std::vector<search::Id> curves_kept() const override { return curves_kept_; }
    /// "running", "complete" or "stopped": what the next write says of the run.
    void set_state(const std::string& state) { facts_.state = state; }
    [[nodiscard]] const store::ArchiveFacts& facts() const noexcept { return facts_; }

private:
    const store::RunDirectory& directory_;
    const search::Space& space_;
    store::ArchiveFacts facts_;
    store::RunLock& lock_;
    std::vector<search::Id> curves_kept_;
    std::vector<search::Id> curves_in_newest_;  ///< that were still in memory when it was written
};

}  // namespace finch::app
