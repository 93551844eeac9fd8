#include "read_bytes.hpp"

#include "finch/base/files.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace finch::store {
namespace {

/// A worker's journal stays below this size for a million evaluations without an archive. A larger file is not a
/// journal.
constexpr std::size_t most_bytes = std::size_t{1} << 30;
constexpr std::size_t step_bytes = std::size_t{1} << 20;

}  // namespace

Bytes read_bytes(const std::filesystem::path& path, std::vector<std::string>& problems) {
    std::string problem;
    const FileDescriptor file = open_regular(path, O_RDONLY, problem);
    if (!file && !is_storage_failure(errno)) {
        problems.push_back(path.string() + ": " + problem);
        return {};
    }
    if (!file) {
        throw StorageError("cannot open " + path.string() + ": " + problem);
    }
    Bytes bytes;
    while (bytes.size() < most_bytes) {
        const std::size_t before = bytes.size();
        bytes.resize(before + step_bytes);
        const ssize_t got = retry([&] { return ::read(file.get(), bytes.data() + before, step_bytes); });
        if (got < 0) {
            throw_storage("cannot read " + path.string());
        }
        bytes.resize(before + static_cast<std::size_t>(got));
        if (got == 0) {
            return bytes;
        }
    }
    problems.push_back(path.string() + ": only its first GiB is read");
    return bytes;
}

}  // namespace finch::store
