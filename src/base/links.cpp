#include "finch/base/links.hpp"

#include "finch/base/format.hpp"

#include <system_error>

namespace finch {

std::string dangling_link(const std::filesystem::path& path) {
    std::filesystem::path place;
    for (const std::filesystem::path& part : path) {
        place /= part;
        std::error_code none;
        if (std::filesystem::is_symlink(place, none) && !std::filesystem::exists(place, none)) {
            return fmt::format("{} is a symbolic link to {}, which is not there", place.string(),
                               std::filesystem::read_symlink(place, none).string());
        }
    }
    return "";
}

}  // namespace finch
