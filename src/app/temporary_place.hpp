#pragma once

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace finch::app {

/// A new directory in the parent of the run directory, which all nodes can read. The destructor removes the directory
/// and its content.
class TemporaryPlace {
public:
    /// `who`: begins the message of an error; without its dashes, the name of the directory. Throws ConfigError.
    TemporaryPlace(const std::filesystem::path& run, const std::string& who) : parent_(parent_of(run)) {
        std::error_code failure;
        is_new_ = std::filesystem::create_directories(parent_, failure);
        std::string name = (parent_ / fmt::format(".{}-XXXXXX", who.substr(who.find_first_not_of('-')))).string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw ConfigError(
                fmt::format("{}: no folder can be made in {}: {}", who, parent_.string(), std::strerror(errno)));
        }
        path_ = name;
    }
    ~TemporaryPlace() {
        std::error_code none;
        std::filesystem::remove_all(path_, none);
        if (is_new_) {
            std::filesystem::remove(parent_, none);
        }
    }
    TemporaryPlace(const TemporaryPlace&) = delete;
    TemporaryPlace& operator=(const TemporaryPlace&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    static std::filesystem::path parent_of(const std::filesystem::path& run) {
        const std::filesystem::path place = std::filesystem::absolute(run).lexically_normal();
        return place.has_filename() ? place.parent_path() : place.parent_path().parent_path();  // runs/mine/
    }

    std::filesystem::path parent_;
    std::filesystem::path path_;
    bool is_new_ = false;
};

}  // namespace finch::app
