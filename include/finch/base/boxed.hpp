#pragma once

#include <memory>
#include <utility>

namespace finch {

/// Optional T on the heap; null stands for T{}. A value: copies share nothing.
template <class T>
class Boxed {
public:
    using value_type = T;

    Boxed() = default;
    Boxed(T value) : value_(std::make_unique<T>(std::move(value))) {}
    Boxed(const Boxed& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
    Boxed(Boxed&&) noexcept = default;
    Boxed& operator=(const Boxed& other) {
        value_ = other.value_ ? std::make_unique<T>(*other.value_) : nullptr;
        return *this;
    }
    Boxed& operator=(Boxed&&) noexcept = default;
    ~Boxed() = default;

    [[nodiscard]] const T& operator*() const noexcept { return value_ ? *value_ : absent; }
    [[nodiscard]] const T* operator->() const noexcept { return &**this; }
    /// The value for writing, allocated at the first call.
    [[nodiscard]] T& edit() {
        if (!value_) {
            value_ = std::make_unique<T>();
        }
        return *value_;
    }
    /// Whether a T of its own is held, which may be T{} all the same.
    [[nodiscard]] bool is_held() const noexcept { return value_ != nullptr; }

private:
    static inline const T absent{};
    std::unique_ptr<T> value_;
};

}  // namespace finch
