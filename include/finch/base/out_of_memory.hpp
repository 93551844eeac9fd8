#pragma once

#include <cstdint>
#include <new>
#include <string>

namespace finch {

/// A std::bad_alloc with a message: how much memory was needed and how much was free.
class OutOfMemory : public std::bad_alloc {
public:
    OutOfMemory(std::int64_t needed_bytes, std::int64_t free_bytes)
        : text_("it needs " + mebibytes(needed_bytes) + ", and " + mebibytes(free_bytes) + " are left") {}
    [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

private:
    static std::string mebibytes(std::int64_t bytes) {
        return std::to_string((bytes + mebibyte - 1) / mebibyte) + " MiB";
    }
    static constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

    std::string text_;
};

}  // namespace finch
