#pragma once

#include "finch/base/bytes.hpp"
#include "finch/base/handle.hpp"

#include <cstdint>
#include <deque>
#include <filesystem>

namespace finch::store {

/// The records of one leader since the last archive. Each record is appended with write(2) before other processes
/// receive it, so killing processes loses no record.
class Journal {
public:
    /// Starts an empty journal: a resumed run has already merged the old records into a synced archive. Renames an
    /// existing file to `path.damaged` if it contains anything except records of `run`, or if it is not a regular file.
    /// Throws StorageError.
    Journal(std::filesystem::path path, std::uint64_t run);

    /// Appends a record. Throws StorageError if the record cannot be written completely. After a failure, the file
    /// still ends with its last complete record.
    void write(const Bytes& record);
    /// Calls fdatasync if a record was written since the last call, but at most once a second unless `now` is true. If
    /// fdatasync fails, rewrites the file. Throws StorageError if the rewrite fails too, or if another job has replaced
    /// this journal.
    void sync(bool now);
    /// Drops the first `records` records that this journal ever had, because a synced archive contains them. Rewrites
    /// the file with the remaining records, unless this would save little space. Throws nothing: if the new file cannot
    /// be written, the old file is still valid.
    void forget(std::uint64_t records);
    /// Returns the number of records written since the journal was started.
    [[nodiscard]] std::uint64_t written() const noexcept { return forgotten_ + kept_.size(); }

private:
    void open(int flags);
    void cut_torn_end();
    void check_name() const;
    void rewrite();

    std::filesystem::path path_;
    FileDescriptor file_;
    std::deque<Bytes> kept_;  ///< the records of the file, or only those that no archive has
    std::uint64_t forgotten_ = 0;
    std::uint64_t file_bytes_ = 0;
    std::uint64_t kept_bytes_ = 0;
    double last_sync_ = 0;
    bool is_dirty_ = false;
    bool counts_names_ = false;  ///< the file system reports the file's link count
    bool is_torn_ = false;       ///< an incomplete record follows at file_bytes_
};

}  // namespace finch::store
