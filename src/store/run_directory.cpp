#include "finch/store/run_directory.hpp"

#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/replace.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <unistd.h>

namespace finch::store {
namespace {

namespace fs = std::filesystem;

/// A parallel file system serves each folder from a single server.
constexpr int workers_per_folder = 256;
constexpr std::string_view training_prefix = "training-";
constexpr std::string_view weights_prefix = "weights-";
constexpr std::string_view epoch_prefix = "epoch-";

/// `is_new`: the run directory is not there yet, so its place is the user's choice.
[[noreturn]] void refuse(int code, bool is_new, const std::string& why) {
    if (is_new ? is_storage_failure_of_users_path(code) : is_storage_failure(code)) {
        throw StorageError(why);
    }
    throw ConfigError(why + "; choose a writable folder with --run DIR");
}

void make_folder(const fs::path& folder, bool is_new) {
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (!failure) {
        return;
    }
    if (const std::string link = dangling_link(folder); !link.empty()) {
        throw ConfigError(fmt::format("the run directory {} cannot be made: {}; make that folder, or remove the link",
                                      folder.string(), link));
    }
    std::error_code unknown;
    refuse(failure.value(), is_new,
           fmt::format("the run directory {} cannot be made: {}", folder.string(),
                       fs::exists(folder, unknown) ? "there is a file of that name" : failure.message()));
}

/// Writes and removes a file in `folder`: permissions alone do not show a full disk or a read-only mount.
void prove_writable(const fs::path& folder, bool is_new) {
    const fs::path probe = folder / fmt::format(".probe-{}", ::getpid());
    const FileDescriptor file = make_file(probe);
    const bool written = file && ::write(file.get(), "finch\n", 6) == 6 && ::fsync(file.get()) == 0;
    const int code = errno;
    ::unlink(probe.c_str());
    if (!written) {
        refuse(code, is_new,
               fmt::format("nothing can be written in the run directory {}: {}", folder.string(), std::strerror(code)));
    }
}

/// Returns the id in a file name such as "PREFIX0.3.17.h5".
std::optional<search::Id> id_behind(std::string_view prefix, const fs::path& path) {
    const std::string stem = path.stem().string();
    if (path.extension() != ".h5" || !stem.starts_with(prefix)) {
        return std::nullopt;
    }
    try {
        return search::parse_id(stem.substr(prefix.size()));
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace

fs::path RunDirectory::state_of(int worker) const {
    return worker < workers_per_folder ? state() : state() / fmt::format("{:03}", worker / workers_per_folder);
}

std::vector<fs::path> RunDirectory::state_files() const {
    std::vector<fs::path> files = list_folder(state());
    for (const fs::path& path : std::vector<fs::path>(files)) {
        const std::string name = path.filename().string();
        std::error_code none;
        if (name.size() >= 3 && name.find_first_not_of("0123456789") == std::string::npos &&
            fs::is_directory(path, none)) {
            const std::vector<fs::path> more = list_folder(path);
            files.insert(files.end(), more.begin(), more.end());
        }
    }
    return files;
}

fs::path RunDirectory::journal(int worker) const {
    return state_of(worker) / fmt::format("worker-{:05}.journal", worker);
}

fs::path RunDirectory::worker_best(int worker) const {
    return state_of(worker) / fmt::format("worker-{:05}-best.h5", worker);
}

fs::path RunDirectory::training(search::Id id) const {
    return state_of(static_cast<int>(id.worker())) / fmt::format("{}{}.h5", training_prefix, to_text(id));
}

fs::path RunDirectory::repeat(search::Id id) const {
    return state_of(static_cast<int>(id.worker())) / fmt::format("repeat-{}.h5", to_text(id));
}

fs::path RunDirectory::weights(search::Id id) const {
    return state_of(static_cast<int>(id.worker())) / fmt::format("{}{}.h5", weights_prefix, to_text(id));
}

fs::path RunDirectory::after_epoch(search::Id id, std::int64_t epoch) const {
    return state_of(static_cast<int>(id.worker())) / fmt::format("{}{}-{}.h5", epoch_prefix, epoch, to_text(id));
}

fs::path RunDirectory::checkpoint_after_epoch(search::Id id, std::int64_t epoch) const {
    return after_epoch(id, epoch).replace_extension();
}

fs::path RunDirectory::evaluation(search::Id id) const {
    return evaluations() / fmt::format("{}.{}", id.restart(), id.worker()) / std::to_string(id.sequence());
}

fs::path RunDirectory::evaluation_file(search::Id id, const std::string& what) const {
    return evaluation(id).string() + "." + what;
}

std::optional<search::Id> RunDirectory::id_of_training(const fs::path& path) {
    return id_behind(training_prefix, path);
}

std::optional<search::Id> RunDirectory::id_of_weights(const fs::path& path) {
    return id_behind(weights_prefix, path);
}

bool RunDirectory::is_after_epoch(const fs::path& path) {
    return path.filename().string().starts_with(epoch_prefix);
}

bool RunDirectory::holds_a_run() const {
    const std::string name = archive().string();
    return is_there(name) || is_there(name + previous_suffix) || is_there(name + damaged_suffix) || !remains().empty();
}

std::vector<fs::path> RunDirectory::remains() const {
    std::vector<fs::path> found;
    for (const fs::path& path : state_files()) {
        std::error_code none;
        const bool is_of_a_run = path.extension() == ".journal" || path.extension() == ".h5";
        if (is_of_a_run && fs::is_regular_file(path, none) && fs::file_size(path, none) > 0) {
            found.push_back(path);
        }
    }
    return found;
}

void RunDirectory::create(int workers, bool was_made) const {
    std::error_code unknown;
    const bool is_new = !was_made && !fs::exists(state(), unknown);
    for (const fs::path& folder : {root_, state(), best_model().parent_path()}) {
        make_folder(folder, is_new);
    }
    for (int worker = workers_per_folder; worker < workers; worker += workers_per_folder) {
        make_folder(state_of(worker), is_new);
    }
    prove_writable(root_, is_new);
    prove_writable(state(), is_new);
}

fs::path RunDirectory::move_aside() const {
    fs::path plain = root_.lexically_normal();
    if (!plain.has_filename()) {
        plain = plain.parent_path();
    }
    std::error_code none;
    const bool is_link = fs::is_symlink(plain, none);
    if (is_link) {
        plain = fs::canonical(plain, none);
    }
    int number = 1;
    const auto name = [&] { return fs::path(fmt::format("{}.{}", plain.string(), number)); };
    std::error_code unknown;
    while (fs::exists(fs::symlink_status(name(), unknown))) {
        ++number;
    }
    std::error_code failure;
    fs::rename(plain, name(), failure);
    if (is_link && !failure) {
        fs::create_directory(plain, failure);  // the target of the link
    }
    if (failure) {
        refuse(failure.value(), true,
               fmt::format("{} cannot be renamed to {}: {}", plain.string(), name().string(), failure.message()));
    }
    return name();
}

}  // namespace finch::store
