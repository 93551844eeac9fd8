#include "finch/store/journal.hpp"

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

constexpr double check_seconds = 10;  // world rank 0 checks the run's lock as often
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

Journal::Journal(std::filesystem::path path, std::uint64_t run, JournalOptions options)
    : path_(std::move(path)), options_(std::move(options)), last_check_(options_.clock()) {
    // A new file is made: if another job still writes to the old file, that does no harm.
    if (try_open(O_CREAT | O_EXCL)) {
        std::error_code none;
        if (std::filesystem::is_symlink(path_, none) || (is_there(path_) && has_foreign_parts(path_, run))) {
            set_aside(path_);
        }
        if (::unlink(path_.c_str()) != 0 && errno != ENOENT) {
            throw_storage("cannot begin anew " + path_.string());
        }
        open(O_CREAT | O_EXCL);
    }
    sync_folder(path_.parent_path());
}

void Journal::open(int flags) {
    if (const auto problem = try_open(flags)) {
        throw StorageError("cannot open " + path_.string() + ": " + *problem);
    }
}

std::optional<std::string> Journal::try_open(int flags) {
    std::string problem;
    struct stat about {};
    file_ = open_regular(path_, O_WRONLY | O_APPEND | O_NOFOLLOW | flags, problem, &about);
    if (!file_) {
        return problem;
    }
    file_bytes_ = static_cast<std::uint64_t>(about.st_size);
    counts_names_ = about.st_nlink > 0;
    return std::nullopt;
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
    dirty_since_ = dirty_since_ ? dirty_since_ : options_.clock();
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
    const double time = options_.clock();
    if (!dirty_since_ || (!now && time - *dirty_since_ < options_.sync_seconds)) {
        return;
    }
    if (file_ && (now || time - last_check_ >= check_seconds)) {
        last_check_ = time;
        check_name();
    }
    if (!file_ || retry([&] { return ::fdatasync(file_.get()); }) != 0) {
        // Unsynced records may be lost from the file although write(2) succeeded. rewrite() writes all records again.
        rewrite();
    }
    dirty_since_.reset();
}

void Journal::forget(std::uint64_t records) {
    while (forgotten_ < records && !kept_.empty()) {
        kept_bytes_ -= kept_.front().size();
        kept_.pop_front();
        ++forgotten_;
    }
    if (kept_.empty() && file_bytes_ > 0) {
        dirty_since_.reset();  // a synced archive has all records
        if (file_ && ::ftruncate(file_.get(), 0) == 0) {
            file_bytes_ = 0;
        }
    } else if (file_bytes_ - kept_bytes_ >= worthwhile_bytes) {
        try {
            rewrite();
            dirty_since_.reset();
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
        replace_file(path_, {tail}, {Predecessor::drop});
    } catch (const StorageError&) {
        open(0);
        throw;
    }
    open(0);
}

}  // namespace finch::store
