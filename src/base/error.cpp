#include "finch/base/error.hpp"

#include "finch/base/handle.hpp"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace finch {

void throw_errno(const std::string& what) {
    const int code = errno;
    throw ApiError(what + ": " + std::strerror(code));
}

void FileDescriptorTraits::destroy(type descriptor) noexcept {
    ::close(descriptor);
}

}  // namespace finch
