#pragma once

#include "finch/base/fields.hpp"

#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

/// Serialization of values for messages between MPI ranks, which all run the same program. Do not write these messages
/// to files.
namespace finch {

namespace detail {

/// Returns references to all members of an aggregate, in order of declaration.
template <class T>
[[nodiscard]] constexpr auto members_of(T& value) {
    constexpr std::size_t count = member_count<std::remove_const_t<T>>();
    static_assert(count <= 11, "a line for more members is missing");
    if constexpr (count == 11) {
        auto& [a, b, c, d, e, f, g, h, i, j, k] = value;
        return std::tie(a, b, c, d, e, f, g, h, i, j, k);
    } else if constexpr (count == 10) {
        auto& [a, b, c, d, e, f, g, h, i, j] = value;
        return std::tie(a, b, c, d, e, f, g, h, i, j);
    } else if constexpr (count == 9) {
        auto& [a, b, c, d, e, f, g, h, i] = value;
        return std::tie(a, b, c, d, e, f, g, h, i);
    } else if constexpr (count == 8) {
        auto& [a, b, c, d, e, f, g, h] = value;
        return std::tie(a, b, c, d, e, f, g, h);
    } else if constexpr (count == 7) {
        auto& [a, b, c, d, e, f, g] = value;
        return std::tie(a, b, c, d, e, f, g);
    } else if constexpr (count == 6) {
        auto& [a, b, c, d, e, f] = value;
        return std::tie(a, b, c, d, e, f);
    } else if constexpr (count == 5) {
        auto& [a, b, c, d, e] = value;
        return std::tie(a, b, c, d, e);
    } else if constexpr (count == 4) {
        auto& [a, b, c, d] = value;
        return std::tie(a, b, c, d);
    } else if constexpr (count == 3) {
        auto& [a, b, c] = value;
        return std::tie(a, b, c);
    } else if constexpr (count == 2) {
        auto& [a, b] = value;
        return std::tie(a, b);
    } else {
        auto& [a] = value;
        return std::tie(a);
    }
}

template <class T>
inline constexpr bool is_map = requires {
    typename T::mapped_type;
};

template <class T>
void put_message(ByteWriter& writer, const T& value) {
    if constexpr (std::same_as<T, std::string>) {
        writer.put_text(value);
    } else if constexpr (std::is_trivially_copyable_v<T>) {
        writer.put(value);
    } else if constexpr (is_map<T>) {
        writer.put(static_cast<std::uint32_t>(value.size()));
        for (const auto& [key, mapped] : value) {
            put_message(writer, key);
            put_message(writer, mapped);
        }
    } else if constexpr (is_list<T>) {
        writer.put(static_cast<std::uint32_t>(value.size()));
        for (const auto& entry : value) {
            put_message<typename T::value_type>(writer, entry);
        }
    } else if constexpr (Recorded<T>) {
        put_value(writer, value);
    } else {
        std::apply([&writer](const auto&... member) { (put_message(writer, member), ...); }, members_of(value));
    }
}

template <class T>
void get_message(ByteReader& reader, T& value) {
    if constexpr (std::same_as<T, std::string>) {
        value = reader.get_text();
    } else if constexpr (std::is_trivially_copyable_v<T>) {
        value = reader.get<T>();
    } else if constexpr (is_map<T>) {
        for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
            typename T::key_type key{};
            get_message(reader, key);
            get_message(reader, value[std::move(key)]);
        }
    } else if constexpr (is_list<T>) {
        for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
            typename T::value_type entry{};
            get_message(reader, entry);
            value.push_back(std::move(entry));
        }
    } else if constexpr (Recorded<T>) {
        get_value(reader, value, std::numeric_limits<std::uint16_t>::max());
    } else {
        std::apply([&reader](auto&... member) { (get_message(reader, member), ...); }, members_of(value));
    }
}

}  // namespace detail

/// Serializes a number, a text, an aggregate of up to eleven members, a recorded struct, or a list or map of these.
template <class T>
[[nodiscard]] std::string to_message(const T& value) {
    Bytes bytes;
    ByteWriter writer(bytes);
    detail::put_message(writer, value);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Reads a value that to_message() wrote. Throws FileError if the message ends too early.
template <class T>
[[nodiscard]] T from_message(const std::string& message) {
    ByteReader reader(std::as_bytes(std::span(message)));
    T value{};
    detail::get_message(reader, value);
    return value;
}

}  // namespace finch
