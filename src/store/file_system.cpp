#include "finch/store/file_system.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"
#include "finch/base/replace.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace finch::store {
namespace {

namespace fs = std::filesystem;

/// Returns the name of the file system with the number `type`. The numbers are from statfs(2) and from the file
/// systems' own headers.
std::string name_of(std::uint32_t type) {
    static const std::vector<std::pair<std::uint32_t, const char*>> known{
        {0xEF53, "ext"},          {0x58465342, "XFS"},   {0x9123683E, "Btrfs"},  {0x01021994, "tmpfs"},
        {0x794C7630, "overlay"},  {0x6969, "NFS"},       {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},
        {0x19830326, "BeeGFS"},   {0x00C36400, "Ceph"},  {0x65735546, "FUSE"},   {0x2FC12FC1, "ZFS"},
        {0xFF534D42, "CIFS"},     {0xFE534D42, "SMB"},   {0x01021997, "9p"},     {0xAAD7AAEA, "PanFS"},
        {0x20030528, "OrangeFS"}, {0x858458F6, "ramfs"}, {0x5346414F, "AFS"},    {0x6A656A63, "virtiofs"},
    };
    for (const auto& [number, name] : known) {
        if (number == type) {
            return name;
        }
    }
    return fmt::format("0x{:x}", type);
}

/// A temporary file. The destructor removes the file and its second name.
class Probe {
public:
    explicit Probe(const fs::path& folder) : path_(folder / fmt::format(".finch-probe-{}", ::getpid())) {
        file_ = make_file(path_);
    }
    ~Probe() {
        ::unlink(path_.c_str());
        ::unlink(second_name().c_str());
    }
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    [[nodiscard]] bool is_open() const { return static_cast<bool>(file_); }
    [[nodiscard]] bool write() const {
        const std::vector<char> mebibyte(std::size_t{1} << 20, 'f');
        return ::write(file_.get(), mebibyte.data(), mebibyte.size()) == static_cast<ssize_t>(mebibyte.size());
    }
    [[nodiscard]] bool lock() const {
        struct flock lock {};
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        return ::fcntl(file_.get(), F_OFD_SETLK, &lock) == 0;
    }
    [[nodiscard]] bool sync() const { return ::fsync(file_.get()) == 0; }
    [[nodiscard]] bool link() const { return ::link(path_.c_str(), second_name().c_str()) == 0; }

private:
    [[nodiscard]] std::string second_name() const { return path_.string() + ".link"; }

    fs::path path_;
    FileDescriptor file_;
};

bool can_sync_folder(const fs::path& folder) {
    try {
        sync_folder(folder);
        return true;
    } catch (const StorageError&) {
        return false;
    }
}

}  // namespace

FileSystem try_file_system(const fs::path& folder) {
    FileSystem found{.path = folder.string(), .kind = "unknown"};
    const auto note = [&found](bool works, const char* what) {
        if (!works && found.problem.empty()) {
            found.problem = fmt::format("{}: {}", what, std::strerror(errno));
        }
        return works;
    };
    struct statfs about {};
    if (note(::statfs(folder.c_str(), &about) == 0, "statfs")) {
        found.kind = name_of(static_cast<std::uint32_t>(about.f_type));
        found.free_bytes = static_cast<std::int64_t>(about.f_bavail) * static_cast<std::int64_t>(about.f_bsize);
    }
    const Probe probe(folder);
    found.writes = note(probe.is_open(), "open") && note(probe.write(), "write");
    if (!found.writes) {
        return found;
    }
    const double begin = steady_seconds();
    found.syncs = note(probe.sync(), "fsync") && note(can_sync_folder(folder), "fsync of the folder");
    found.sync_seconds = steady_seconds() - begin;
    found.locks = note(probe.lock(), "fcntl lock");
    found.hard_links = note(probe.link(), "link");
    return found;
}

}  // namespace finch::store
