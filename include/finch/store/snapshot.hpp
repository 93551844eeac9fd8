#pragma once

#include "finch/store/model_file.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace finch::store {

/// The snapshot of a training. Only this object writes and removes its files. It remembers the names that it has
/// written, so it makes no calls for names that do not exist. write() does not sync the folder: after a crash of the
/// node, the snapshot may be missing or an earlier one, and the training repeats some steps.
class Snapshot {
public:
    /// `may_exist`: an earlier start may have left a snapshot.
    Snapshot(std::filesystem::path path, bool may_exist)
        : path_(std::move(path)), names_(may_exist ? Names::unknown : Names::none) {}
    /// Reads the snapshot like read_model(), if there may be one.
    [[nodiscard]] std::optional<ModelFile> read(std::vector<std::string>& problems) const;
    /// Throws like write_model().
    void write(const ModelFile& model);
    /// Removes all files. A file that cannot be removed stays; the next start removes it.
    void remove();

private:
    enum class Names { none, file, file_and_previous, unknown };

    std::filesystem::path path_;
    Names names_;
};

}  // namespace finch::store
