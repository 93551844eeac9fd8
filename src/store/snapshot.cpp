#include "finch/store/snapshot.hpp"

#include <system_error>

namespace finch::store {

std::optional<ModelFile> Snapshot::read(std::vector<std::string>& problems) const {
    return names_ == Names::none ? std::nullopt : read_model(path_, problems, OnDamage::set_aside);
}

void Snapshot::write(const ModelFile& model) {
    const Names before = std::exchange(names_, Names::unknown);  // while it is written, and if that fails
    const Predecessor predecessor = before == Names::none ? Predecessor::drop : Predecessor::keep;
    write_model(path_, model, {.predecessor = predecessor, .folder = FolderSync::none});
    names_ = before == Names::none ? Names::file : before == Names::unknown ? Names::unknown : Names::file_and_previous;
}

void Snapshot::remove() {
    std::error_code ignored;
    switch (std::exchange(names_, Names::none)) {
        case Names::none:
            break;
        case Names::file:
            std::filesystem::remove(path_, ignored);
            break;
        case Names::file_and_previous:
            // The snapshot stays if its predecessor cannot be removed: its name leads to the remaining file.
            if (std::filesystem::remove(path_.string() + previous_suffix, ignored)) {
                std::filesystem::remove(path_, ignored);
            } else {
                names_ = Names::unknown;
            }
            break;
        case Names::unknown:
            remove_model(path_);
            break;
    }
}

}  // namespace finch::store
