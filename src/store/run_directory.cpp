#include "finch/store/run_directory.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace finch::store {

std::filesystem::path RunDirectory::journal(int worker) const {
    return state() / fmt::format("worker-{:05}.journal", worker);
}

std::filesystem::path RunDirectory::worker_best(int worker) const {
    return state() / fmt::format("worker-{:05}-best.h5", worker);
}

std::filesystem::path RunDirectory::training(search::Id id) const {
    return state() / fmt::format("training-{}.h5", to_text(id));
}

bool RunDirectory::holds_a_run() const {
    std::error_code none;
    return std::filesystem::exists(archive(), none) || std::filesystem::exists(archive().string() + ".previous", none);
}

void RunDirectory::create() const {
    for (const std::filesystem::path& folder : {root_, state(), root_ / "models", log()}) {
        std::error_code error;
        std::filesystem::create_directories(folder, error);
        if (error) {
            throw ConfigError(
                fmt::format("{}: the run directory cannot be made: {}", folder.string(), error.message()));
        }
    }
    const std::filesystem::path probe = state() / "probe";
    try {
        const FileDescriptor file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
        if (!file || ::write(file.get(), "x", 1) != 1) {
            throw_errno(probe.string());
        }
    } catch (const ApiError& error) {
        throw ConfigError(fmt::format("the run directory cannot be written: {}", error.what()));
    }
    std::filesystem::remove(probe);
}

std::filesystem::path RunDirectory::move_aside() const {
    for (int number = 1;; ++number) {
        const std::filesystem::path aside = fmt::format("{}.{}", root_.string(), number);
        if (!std::filesystem::exists(aside)) {
            std::filesystem::rename(root_, aside);
            return aside;
        }
    }
}

}  // namespace finch::store
