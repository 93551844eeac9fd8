#include "finch/store/run_directory.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace finch::store {
namespace {

namespace fs = std::filesystem;

/// A parallel file system serves one folder from one server.
constexpr int workers_per_folder = 256;

void make_folder(const fs::path& folder) {
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure || !fs::is_directory(folder)) {
        throw ConfigError(fmt::format("the run directory {} cannot be made: {}", folder.string(),
                                      failure ? failure.message() : "there is a file of that name"));
    }
}

/// Writes and removes a file in `folder`: permissions alone do not tell of a full disk or a read-only mount.
void prove_writable(const fs::path& folder) {
    const fs::path probe = folder / fmt::format(".probe-{}", ::getpid());
    const FileDescriptor file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    const bool written = file && ::write(file.get(), "finch\n", 6) == 6 && ::fsync(file.get()) == 0;
    const int code = errno;
    ::unlink(probe.c_str());
    if (!written) {
        throw ConfigError(
            fmt::format("nothing can be written in the run directory {}: {}", folder.string(), std::strerror(code)));
    }
}

}  // namespace

fs::path RunDirectory::state_of(int worker) const {
    return worker < workers_per_folder ? state() : state() / fmt::format("{:03}", worker / workers_per_folder);
}

std::vector<fs::path> RunDirectory::state_folders() const {
    std::vector<fs::path> folders{state()};
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(state(), none)) {
        const std::string name = entry.path().filename().string();
        if (name.size() >= 3 && name.find_first_not_of("0123456789") == std::string::npos && entry.is_directory(none)) {
            folders.push_back(entry.path());
        }
    }
    std::sort(folders.begin(), folders.end());
    return folders;
}

fs::path RunDirectory::journal(int worker) const {
    return state_of(worker) / fmt::format("worker-{:05}.journal", worker);
}

fs::path RunDirectory::worker_best(int worker) const {
    return state_of(worker) / fmt::format("worker-{:05}-best.h5", worker);
}

fs::path RunDirectory::training(search::Id id) const {
    return state_of(static_cast<int>(id.worker())) / fmt::format("training-{}.h5", to_text(id));
}

bool RunDirectory::holds_a_run() const {
    const std::string name = archive().string();
    return fs::exists(name) || fs::exists(name + hdf5::previous_suffix) || fs::exists(name + hdf5::damaged_suffix);
}

void RunDirectory::create(int workers) const {
    for (const fs::path& folder : {root_, state(), best_model().parent_path(), log()}) {
        make_folder(folder);
    }
    for (int worker = workers_per_folder; worker < workers; worker += workers_per_folder) {
        make_folder(state_of(worker));
    }
    prove_writable(root_);
    prove_writable(state());
}

fs::path RunDirectory::move_aside() const {
    fs::path plain = root_.lexically_normal();
    if (!plain.has_filename()) {
        plain = plain.parent_path();
    }
    int number = 1;
    const auto name = [&] { return fs::path(fmt::format("{}.{}", plain.string(), number)); };
    while (fs::exists(fs::symlink_status(name()))) {
        ++number;
    }
    std::error_code failure;
    fs::rename(plain, name(), failure);
    if (failure) {
        throw ConfigError(
            fmt::format("{} cannot be renamed to {}: {}", plain.string(), name().string(), failure.message()));
    }
    return name();
}

}  // namespace finch::store
