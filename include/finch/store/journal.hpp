#pragma once

#include "finch/base/bytes.hpp"
#include "finch/base/handle.hpp"

#include <cstdint>
#include <deque>
#include <filesystem>

namespace finch::store {

/// One leader's records since the last archive, appended with write(2) before anybody hears of them, so that no kill of
/// processes loses one.
class Journal {
public:
    /// Begins anew (a resumed run has merged the old content into a synced archive before). An old file with anything
    /// in it that is no record of `run`, and whatever else has the name, is set aside as `path.damaged` first. Throws
    /// StorageError.
    Journal(std::filesystem::path path, std::uint64_t run);

    /// Appends. Throws StorageError if it cannot be written in full; then the file still ends with its last whole
    /// record.
    void write(const Bytes& record);
    /// fdatasync where something was written since the last, and no sooner than a second after it unless `now`. Where
    /// that fails the file is written anew; throws StorageError if that fails too, and where another job has begun
    /// the journal anew.
    void sync(bool now);
    /// The first `records` that were ever written here are in a synced archive: the file is replaced by what follows
    /// them. Cheap where little would be won: it may leave them. Throws nothing: where the new file cannot be written,
    /// the old one does no harm.
    void forget(std::uint64_t records);
    /// Written since the beginning.
    [[nodiscard]] std::uint64_t written() const noexcept { return forgotten_ + kept_.size(); }

private:
    void open(int flags);
    void cut_torn_end();
    void check_name() const;
    void rewrite();

    std::filesystem::path path_;
    FileDescriptor file_;
    std::deque<Bytes> kept_;  ///< what the file holds, or the part of it that no archive has
    std::uint64_t forgotten_ = 0;
    std::uint64_t file_bytes_ = 0;
    std::uint64_t kept_bytes_ = 0;
    double last_sync_ = 0;
    bool is_dirty_ = false;
    bool counts_names_ = false;  ///< the file system says how many names the file has
    bool is_torn_ = false;       ///< behind file_bytes_ there is the beginning of a record
};

}  // namespace finch::store
