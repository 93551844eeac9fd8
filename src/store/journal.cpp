#include "finch/store/journal.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/log.hpp"
#include "finch/hdf5/file.hpp"
#include "finch/hdf5/replace.hpp"

#include "read_bytes.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace finch::store {
namespace {

constexpr double sync_seconds = 1;
constexpr std::uint64_t worthwhile_bytes = std::uint64_t{1} << 20;

/// Whether a file holds anything but whole records of `run`.
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
    if (std::filesystem::exists(path_) && has_foreign_parts(path_, run)) {
        std::error_code ignored;
        std::filesystem::rename(path_, path_.string() + hdf5::damaged_suffix, ignored);
    }
    open(O_CREAT | O_TRUNC);
    hdf5::sync_folder(path_.parent_path());
}

void Journal::open(int flags) {
    file_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0666));
    if (!file_) {
        throw_errno("cannot open " + path_.string());
    }
}

void Journal::write(const Bytes& record) {
    std::size_t written = 0;
    while (written < record.size()) {
        const ssize_t now = ::write(file_.get(), record.data() + written, record.size() - written);
        if (now < 0 && errno != EINTR) {
            const int code = errno;
            // Should this fail too, the torn end is cut off when it is read.
            static_cast<void>(::ftruncate(file_.get(), static_cast<off_t>(file_bytes_)));
            errno = code;
            throw_errno("cannot write " + path_.string());
        }
        written += now < 0 ? 0 : static_cast<std::size_t>(now);
    }
    kept_.push_back(record);
    kept_bytes_ += record.size();
    file_bytes_ += record.size();
    dirty_ = true;
}

void Journal::sync(bool now) {
    if (!dirty_ || (!now && steady_seconds() - last_sync_ < sync_seconds)) {
        return;
    }
    if (::fdatasync(file_.get()) != 0) {
        throw_errno("cannot sync " + path_.string());
    }
    last_sync_ = steady_seconds();
    dirty_ = false;
}

void Journal::forget(std::uint64_t records) {
    while (forgotten_ < records && !kept_.empty()) {
        kept_bytes_ -= kept_.front().size();
        kept_.pop_front();
        ++forgotten_;
    }
    if (kept_.empty() && file_bytes_ > 0) {
        if (::ftruncate(file_.get(), 0) == 0) {
            file_bytes_ = 0;
        }
    } else if (file_bytes_ - kept_bytes_ >= worthwhile_bytes) {
        try {
            rewrite();
        } catch (const ApiError& error) {
            spdlog::warn("{}; the longer file stays", error.what());
        }
    }
}

void Journal::rewrite() {
    Bytes tail;
    tail.reserve(kept_bytes_);
    for (const Bytes& record : kept_) {
        tail.insert(tail.end(), record.begin(), record.end());
    }
    hdf5::replace_file(path_, {tail}, hdf5::Predecessor::drop);
    file_bytes_ = kept_bytes_;
    dirty_ = false;
    open(0);
}

}  // namespace finch::store
