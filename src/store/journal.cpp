#include "finch/store/journal.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"

#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace finch::store {
namespace {

constexpr double sync_seconds = 1;
constexpr std::size_t worth_rewriting = std::size_t{1} << 20;  ///< bytes

FileDescriptor open_new(const std::filesystem::path& path) {
    FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
    if (!file) {
        throw_errno(path.string());
    }
    return file;
}

/// All of `bytes`; write(2) may take fewer at a time.
void write_all(int file, std::span<const std::byte> bytes, const std::filesystem::path& path) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file, bytes.data(), bytes.size());
        if (written < 0) {
            throw_errno("write " + path.string());
        }
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
}

}  // namespace

Journal::Journal(std::filesystem::path path, std::uint64_t run)
    : path_(std::move(path)), run_(run), file_(open_new(path_)), last_sync_(steady_seconds()) {}

void Journal::write(const Bytes& record) {
    try {
        write_all(file_.get(), record, path_);
    } catch (const ApiError&) {
        static_cast<void>(::ftruncate(file_.get(), static_cast<off_t>(bytes_)));  // no torn record stays behind
        throw;
    }
    bytes_ += record.size();
    kept_.push_back(record);
    dirty_ = true;
}

void Journal::sync(bool now) {
    if (!dirty_ || (!now && steady_seconds() - last_sync_ < sync_seconds)) {
        return;
    }
    if (::fdatasync(file_.get()) != 0) {
        throw_errno("fdatasync " + path_.string());
    }
    last_sync_ = steady_seconds();
    dirty_ = false;
}

void Journal::forget(std::uint64_t records) {
    while (forgotten_ < records && !kept_.empty()) {
        forgotten_bytes_ += kept_.front().size();
        kept_.pop_front();
        ++forgotten_;
    }
    if (forgotten_bytes_ == 0 || (!kept_.empty() && forgotten_bytes_ < worth_rewriting)) {
        return;
    }
    const std::filesystem::path beside = path_.string() + ".new";
    FileDescriptor fresh = open_new(beside);
    std::size_t bytes = 0;
    for (const Bytes& record : kept_) {
        write_all(fresh.get(), record, beside);
        bytes += record.size();
    }
    if (::fdatasync(fresh.get()) != 0 || std::rename(beside.c_str(), path_.c_str()) != 0) {
        throw_errno("rename " + beside.string());
    }
    file_ = std::move(fresh);
    bytes_ = bytes;
    forgotten_bytes_ = 0;
}

}  // namespace finch::store
