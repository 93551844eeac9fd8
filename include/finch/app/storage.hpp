#pragma once

#include "finch/island/journal.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/journal.hpp"
#include "finch/store/run_directory.hpp"

#include <filesystem>
#include <functional>
#include <string>

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
    using Written = std::function<void(const search::Population&)>;
    /// `written` is called after each archive with what it holds.
    FileArchive(const store::RunDirectory& directory, const search::Space& space, store::ArchiveFacts facts,
                store::RunLock& lock, Written written);

    void event(const search::Event& event) override;
    void report(const search::WorkerReport& report) override;
    bool write(const search::Population& population) override;
    /// "running", "complete", "stopped" or "terminated" (with seconds left, or a peer dead): what the next write says
    /// of the run.
    void set_state(const std::string& state) { facts_.state = state; }
    [[nodiscard]] const store::ArchiveFacts& facts() const noexcept { return facts_; }

private:
    const store::RunDirectory& directory_;
    const search::Space& space_;
    store::ArchiveFacts facts_;
    store::RunLock& lock_;
    double began_;  ///< steady
    Written written_;
};

}  // namespace finch::app
