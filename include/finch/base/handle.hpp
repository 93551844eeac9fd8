#pragma once

#include <utility>

namespace finch {

/// The sole owner of one C handle. `Traits` supplies `type`, `null()` and `destroy(type)`, which may log but must not
/// throw.
template <class Traits>
class UniqueHandle {
public:
    using type = typename Traits::type;

    UniqueHandle() noexcept : handle_(Traits::null()) {}
    explicit UniqueHandle(type handle) noexcept : handle_(handle) {}
    UniqueHandle(UniqueHandle&& other) noexcept : handle_(other.release()) {}
    UniqueHandle& operator=(UniqueHandle&& other) noexcept {
        if (this != &other) {
            reset(other.release());
        }
        return *this;
    }
    UniqueHandle(const UniqueHandle&) = delete;
    UniqueHandle& operator=(const UniqueHandle&) = delete;
    ~UniqueHandle() { reset(); }

    [[nodiscard]] type get() const noexcept { return handle_; }
    [[nodiscard]] type release() noexcept { return std::exchange(handle_, Traits::null()); }
    [[nodiscard]] explicit operator bool() const noexcept { return !(handle_ == Traits::null()); }
    void reset(type handle = Traits::null()) noexcept {
        const type old = std::exchange(handle_, handle);
        if (!(old == Traits::null())) {
            Traits::destroy(old);
        }
    }

private:
    type handle_;
};

/// The traits of a C handle that is a pointer. `function` destroys the handle; its result is ignored.
template <class Pointer, auto function>
struct PointerTraits {
    using type = Pointer;
    static type null() noexcept { return nullptr; }
    static void destroy(type handle) noexcept { static_cast<void>(function(handle)); }
};

/// A POSIX file descriptor.
struct FileDescriptorTraits {
    using type = int;
    static type null() noexcept { return -1; }
    static void destroy(type descriptor) noexcept;
};
using FileDescriptor = UniqueHandle<FileDescriptorTraits>;

}  // namespace finch
