#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/replace.hpp"
#include "finch/pytorch/network.hpp"
#include "finch/pytorch/state_dict.hpp"

#include <cstdio>
#include <span>
#include <string_view>

namespace finch::pytorch {
namespace {

namespace fs = std::filesystem;

void refuse_existing(const fs::path& folder) {
    std::error_code problem;
    if (is_there(folder) && !(fs::is_directory(folder, problem) && fs::is_empty(folder, problem))) {
        throw ConfigError(
            fmt::format("--output: {} is there already; accepted: a new folder, or an empty one", folder.string()));
    }
}

void write_files(const fs::path& folder, const Network& network) {
    const auto write = [&folder](const char* name, std::span<const std::byte> bytes) {
        replace_file(folder / name, {bytes}, {Predecessor::drop, FolderSync::none});
    };
    const auto write_text = [&write](const char* name, std::string_view text) {
        write(name, std::as_bytes(std::span(text)));
    };
    write_text("model.py", model_source(network));
    write_text("example.py", example_source(network));
    write("model.safetensors", safetensors(network.weights));
    write("model.pt", torch_archive(network.weights));
}

}  // namespace

void write_folder(const fs::path& folder, const Network& network) {
    refuse_existing(folder);
    const fs::path path = (fs::absolute(folder) / "").lexically_normal().parent_path();  // without a slash at the end
    const fs::path beside = unfinished_name(path);
    std::error_code problem;
    fs::create_directories(path.parent_path(), problem);
    if (problem || !fs::create_directory(beside, problem)) {
        throw ConfigError(fmt::format(
            "--output: {} cannot be created ({}); accepted: a new folder, or an empty one", beside.string(),
            problem ? problem.message() : "it is there already, perhaps of an export that was interrupted"));
    }
    try {
        write_files(beside, network);
        if (std::rename(beside.c_str(), path.c_str()) != 0) {
            throw_storage("cannot rename " + beside.string());
        }
    } catch (const std::exception&) {
        fs::remove_all(beside, problem);
        throw;
    }
    sync_folder(path.parent_path());
}

}  // namespace finch::pytorch
