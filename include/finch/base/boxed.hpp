#pragma once

#include <memory>
#include <utility>

namespace finch {

/// An optional T on the heap; null represents T{}. Boxed has value semantics: each copy has its own T.
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
    /// Returns the value for writing; the first call allocates it.
    [[nodiscard]] T& edit() {
        if (!value_) {
            value_ = std::make_unique<T>();
        }
        return *value_;
    }
    /// Returns true if a T is allocated, even if its value equals T{}.
    [[nodiscard]] bool is_held() const noexcept { return value_ != nullptr; }

private:
    static inline const T absent{};
    std::unique_ptr<T> value_;
};

}  // namespace finch
