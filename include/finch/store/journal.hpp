#pragma once

#include "finch/base/bytes.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/handle.hpp"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace finch::store {

struct JournalOptions {
    double sync_seconds = 1;  ///< for Journal::sync(): a record is synced when it is so old
    std::function<double()> clock = steady_seconds;
};

/// The records of one leader since the last archive. Each record is appended with write(2) before other processes
/// receive it, so killing processes loses no record. A crash of the node can lose the records since the last sync.
class Journal {
public:
    /// Starts an empty journal: a resumed run has already merged the old records into a synced archive. Renames an
    /// existing file to `path.damaged` if it contains anything except records of `run`, or if it is not a regular file.
    /// Throws StorageError.
    Journal(std::filesystem::path path, std::uint64_t run, JournalOptions options = {});

    /// Appends a record. Throws StorageError if the record cannot be written completely. After a failure, the file
    /// still ends with its last complete record.
    void write(const Bytes& record);
    /// Calls fdatasync if a record was written JournalOptions::sync_seconds ago or earlier and is not synced yet; with
    /// `now`, any record. If fdatasync fails, rewrites the file. Throws StorageError if the rewrite fails too, or if
    /// another job has replaced this journal, which is checked with `now`, and at most every 10 s.
    void sync(bool now);
    /// Drops the first `records` records that this journal ever had, because a synced archive contains them. Rewrites
    /// the file with the remaining records, unless this would save little space. Throws nothing: if the new file cannot
    /// be written, the old file is still valid.
    void forget(std::uint64_t records);
    /// Returns the number of records written since the journal was started.
    [[nodiscard]] std::uint64_t written() const noexcept { return forgotten_ + kept_.size(); }

private:
    /// Opens the file. Returns the reason of a failure, or nothing.
    std::optional<std::string> try_open(int flags);
    void open(int flags);
    void cut_torn_end();
    void check_name() const;
    void rewrite();

    std::filesystem::path path_;
    JournalOptions options_;
    FileDescriptor file_;
    std::deque<Bytes> kept_;  ///< the records of the file, or only those that no archive has
    std::uint64_t forgotten_ = 0;
    std::uint64_t file_bytes_ = 0;
    std::uint64_t kept_bytes_ = 0;
    std::optional<double> dirty_since_;  ///< time of the first record that is not synced
    double last_check_;                  ///< time of the last check_name()
    bool counts_names_ = false;          ///< the file system reports the file's link count
    bool is_torn_ = false;               ///< an incomplete record follows at file_bytes_
};

}  // namespace finch::store
