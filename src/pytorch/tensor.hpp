#pragma once

#include "finch/base/bytes.hpp"
#include "finch/base/error.hpp"
#include "finch/base/named_array.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace finch::pytorch {

/// A tensor of a state dict: float32, or the int64 of a batch counter.
class Tensor {
public:
    /// `array` must outlive this object. Throws FileError if the array has another type.
    explicit Tensor(const NamedArray& array) {
        if (const auto* const floats = std::get_if<std::vector<float>>(&array.values)) {
            bytes_ = std::as_bytes(std::span(*floats));
            size_ = floats->size();
        } else if (const auto* const numbers = std::get_if<std::vector<std::int64_t>>(&array.values)) {
            bytes_ = std::as_bytes(std::span(*numbers));
            size_ = numbers->size();
            is_counter_ = true;
        } else {
            throw FileError("the array " + array.name + " is neither float32 nor int64");
        }
    }

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool is_counter() const noexcept { return is_counter_; }

private:
    std::span<const std::byte> bytes_;
    std::size_t size_ = 0;
    bool is_counter_ = false;
};

inline void append(Bytes& out, std::span<const std::byte> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
}
/// Appends the letters of `text`, without its size.
inline void append(Bytes& out, std::string_view text) {
    append(out, std::as_bytes(std::span(text)));
}

}  // namespace finch::pytorch
