#pragma once

#include "finch/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace finch {

using Bytes = std::vector<std::byte>;

/// Returns the CRC-32C (Castagnoli, iSCSI polynomial) of `bytes`, continued from `crc` (0 at the start).
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

namespace detail {
/// Computes crc32c() with lookup tables, for processors without a CRC-32C instruction.
[[nodiscard]] std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;
}  // namespace detail

/// A writer that appends values to a byte vector, little-endian: Finch runs on little-endian machines only.
class ByteWriter {
public:
    explicit ByteWriter(Bytes& out) : out_(out) {}

    template <class T>
    requires std::is_trivially_copyable_v<T>
    void put(const T& value) {
        const auto* first = reinterpret_cast<const std::byte*>(&value);
        out_.insert(out_.end(), first, first + sizeof(T));
    }
    void put_text(std::string_view text) {
        put(static_cast<std::uint32_t>(text.size()));
        const auto* first = reinterpret_cast<const std::byte*>(text.data());
        out_.insert(out_.end(), first, first + text.size());
    }
    template <class T>
    requires std::is_trivially_copyable_v<T>
    void put_all(std::span<const T> values) {
        put(static_cast<std::uint32_t>(values.size()));
        const auto raw = std::as_bytes(values);
        out_.insert(out_.end(), raw.begin(), raw.end());
    }

private:
    Bytes& out_;
};

/// A reader of bytes that a ByteWriter wrote. Throws FileError if the bytes end too early.
class ByteReader {
public:
    explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    template <class T>
    requires std::is_trivially_copyable_v<T> T get() {
        T value;
        std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
        return value;
    }
    std::string get_text() {
        const auto size = get<std::uint32_t>();
        const auto raw = take(size);
        return {reinterpret_cast<const char*>(raw.data()), raw.size()};
    }
    template <class T>
    requires std::is_trivially_copyable_v<T> std::vector<T> get_all() {
        const auto count = get<std::uint32_t>();
        const auto raw = take(std::size_t{count} * sizeof(T));
        std::vector<T> values(count);
        if (count > 0) {
            std::memcpy(values.data(), raw.data(), raw.size());
        }
        return values;
    }
    [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - at_; }

private:
    std::span<const std::byte> take(std::size_t size) {
        if (size > left()) {
            throw FileError("a record ends too early");
        }
        at_ += size;
        return bytes_.subspan(at_ - size, size);
    }

    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
};

}  // namespace finch
