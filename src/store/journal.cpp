#include "finch/store/journal.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/log.hpp"
#include "finch/base/replace.hpp"
#include "finch/search/record.hpp"

#include "read_bytes.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace finch::store {
namespace {

constexpr double sync_seconds = 1;
constexpr std::uint64_t worthwhile_bytes = std::uint64_t{1} << 20;

/// True if a file contains anything except whole records of `run`.
bool has_foreign_parts(const std::filesystem::path& path, std::uint64_t run) {
    std::vector<std::string> unreadable;
    const Bytes bytes = read_bytes(path, unreadable);
    search::RecordReader reader(bytes, run, path.string());
    while (reader.next()) {
    }
    return !reader.problems().empty() || !unreadable.empty();
}

}  // namespace

Journal::Journal(std::filesystem::path path, std::uint64_t run) : path_(std::move(path)) {
    std::error_code none;
    if (std::filesystem::is_symlink(path_, none) || (is_there(path_) && has_foreign_parts(path_, run))) {
        set_aside(path_);
    }
    // A new file is made: if another job still writes to the old file, that does no harm.
    if (::unlink(path_.c_str()) != 0 && errno != ENOENT) {
        throw_storage("cannot begin anew " + path_.string());
    }
    open(O_CREAT | O_EXCL);
    sync_folder(path_.parent_path());
}

void Journal::open(int flags) {
    std::string problem;
    file_ = open_regular(path_, O_WRONLY | O_APPEND | O_NOFOLLOW | flags, problem);
    if (!file_) {
        throw StorageError("cannot open " + path_.string() + ": " + problem);
    }
    struct stat about {};
    if (::fstat(file_.get(), &about) != 0) {
        throw_storage("cannot open " + path_.string());
    }
    file_bytes_ = static_cast<std::uint64_t>(about.st_size);
    counts_names_ = about.st_nlink > 0;
}

void Journal::write(const Bytes& record) {
    if (!file_) {
        open(0);
    }
    cut_torn_end();
    is_torn_ = true;
    if (!write_all(file_.get(), record)) {
        const int code = errno;
        // If ftruncate fails too, it is repeated before the next record. Readers also ignore an incomplete record.
        is_torn_ = ::ftruncate(file_.get(), static_cast<off_t>(file_bytes_)) != 0;
        errno = code;
        throw_storage("cannot write " + path_.string());
    }
    is_torn_ = false;
    kept_.push_back(record);
    kept_bytes_ += record.size();
    file_bytes_ += record.size();
    is_dirty_ = true;
}

/// Throws StorageError if the journal's name now belongs to another file. A job that takes over the run replaces all
/// journals. Only world rank 0 checks the run's lock, and it may notice the other job late.
void Journal::check_name() const {
    struct stat about {};
    if (::fstat(file_.get(), &about) != 0) {
        throw_storage("cannot write " + path_.string());
    }
    if (counts_names_ && about.st_nlink == 0) {
        throw StorageError(path_.string() +
                           " is another file by now: another job has begun it anew, or it was removed");
    }
}

void Journal::cut_torn_end() {
    if (is_torn_ && retry([&] { return ::ftruncate(file_.get(), static_cast<off_t>(file_bytes_)); }) != 0) {
        throw_storage("cannot cut a torn record off " + path_.string());
    }
    is_torn_ = false;
}

void Journal::sync(bool now) {
    if (!is_dirty_ || (!now && steady_seconds() - last_sync_ < sync_seconds)) {
        return;
    }
    last_sync_ = steady_seconds();
    if (file_) {
        check_name();
    }
    if (!file_ || retry([&] { return ::fdatasync(file_.get()); }) != 0) {
        // Unsynced records may be lost from the file although write(2) succeeded. rewrite() writes all records again.
        rewrite();
    }
    is_dirty_ = false;
}

void Journal::forget(std::uint64_t records) {
    while (forgotten_ < records && !kept_.empty()) {
        kept_bytes_ -= kept_.front().size();
        kept_.pop_front();
        ++forgotten_;
    }
    if (kept_.empty() && file_bytes_ > 0) {
        if (file_ && ::ftruncate(file_.get(), 0) == 0) {
            file_bytes_ = 0;
        }
    } else if (file_bytes_ - kept_bytes_ >= worthwhile_bytes) {
        try {
            rewrite();
            is_dirty_ = false;
        } catch (const StorageError& error) {
            spdlog::warn("{}; the longer file stays", error.what());
        }
    }
}

/// Writes the kept records into a new file and syncs it. The journal is open afterwards, even after a failure. After a
/// failure, the journal's name may belong to the old or to the new file.
void Journal::rewrite() {
    Bytes tail;
    tail.reserve(kept_bytes_);
    for (const Bytes& record : kept_) {
        tail.insert(tail.end(), record.begin(), record.end());
    }
    if (file_) {
        cut_torn_end();
        check_name();
    }
    try {
        replace_file(path_, {tail}, Predecessor::drop);
    } catch (const StorageError&) {
        open(0);
        throw;
    }
    open(0);
}

}  // namespace finch::store
