#include "descendants.hpp"

#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>

namespace finch::process {
namespace {

struct CloseFolder {
    void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

/// Returns the entries of a /proc folder that are numbers: ids of processes or threads.
std::vector<pid_t> numbers_in(const std::string& path) {
    std::vector<pid_t> numbers;
    const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
    while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        pid_t number = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc()) {
            numbers.push_back(number);
        }
    }
    return numbers;
}

/// Returns the text of a file; empty if the file does not exist (any more).
std::string contents(const std::string& path) {
    std::string text;
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 4096> part;
    for (ssize_t count = 1; file && count > 0;) {
        count = ::read(file.get(), part.data(), part.size());
        text.append(part.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    return text;
}

void append_children(pid_t process, std::vector<pid_t>& found) {
    const std::string threads = fmt::format("/proc/{}/task", process);
    for (const pid_t thread : numbers_in(threads)) {
        const std::string list = contents(fmt::format("{}/{}/children", threads, thread));
        const char* at = list.data();
        const char* const end = at + list.size();
        for (pid_t child = 0; at < end; ++at) {  // each number is followed by a space
            const auto read = std::from_chars(at, end, child);
            if (read.ec != std::errc()) {
                break;
            }
            found.push_back(child);
            at = read.ptr;
        }
    }
}

using ChildrenOf = std::map<pid_t, std::vector<pid_t>>;

ChildrenOf all_children() {
    ChildrenOf children_of;
    for (const pid_t process : numbers_in("/proc")) {
        // "pid (name) state parent …"; the name may contain any character.
        const std::string stat = contents(fmt::format("/proc/{}/stat", process));
        const std::size_t name_end = stat.rfind(") ");
        pid_t parent = 0;
        if (name_end != std::string::npos &&
            std::from_chars(stat.data() + std::min(name_end + 4, stat.size()), stat.data() + stat.size(), parent).ec ==
                std::errc()) {
            children_of[parent].push_back(process);
        }
    }
    return children_of;
}

bool kernel_has_lists() {
    const pid_t self = ::getpid();
    return ::access(fmt::format("/proc/{0}/task/{0}/children", self).c_str(), R_OK) == 0;
}

}  // namespace

std::vector<pid_t> descendants_by_lists(pid_t process) {
    std::vector<pid_t> found;
    append_children(process, found);
    for (std::size_t i = 0; i < found.size(); ++i) {
        append_children(found[i], found);
    }
    return found;
}

std::vector<pid_t> descendants_by_stat(pid_t process) {
    const ChildrenOf children_of = all_children();
    std::vector<pid_t> found{process};
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (const auto its = children_of.find(found[i]); its != children_of.end()) {
            found.insert(found.end(), its->second.begin(), its->second.end());
        }
    }
    found.erase(found.begin());
    return found;
}

std::vector<pid_t> descendants(pid_t process) {
    return kernel_has_lists() ? descendants_by_lists(process) : descendants_by_stat(process);
}

std::vector<pid_t> children(pid_t process) {
    if (!kernel_has_lists()) {
        return all_children()[process];
    }
    std::vector<pid_t> found;
    append_children(process, found);
    return found;
}

bool has_open(pid_t process, const struct stat& file) {
    const std::string folder = fmt::format("/proc/{}/fd", process);
    const std::vector<pid_t> descriptors = numbers_in(folder);
    return std::any_of(descriptors.begin(), descriptors.end(), [&](int descriptor) {
        struct stat one {};
        return ::stat(fmt::format("{}/{}", folder, descriptor).c_str(), &one) == 0 && one.st_dev == file.st_dev &&
               one.st_ino == file.st_ino;
    });
}

}  // namespace finch::process
