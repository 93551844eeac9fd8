#pragma once

#include "finch/base/boxed.hpp"
#include "finch/base/bytes.hpp"
#include "finch/base/enum_words.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Lists of the recorded fields of structs. Finch derives serialization, table columns, CSV, comparisons and
/// documentation from one list per struct.
namespace finch {

/// A struct member that Finch records in files and messages.
template <class Struct, class Member>
struct Field {
    std::string_view name;  ///< name in files
    Member Struct::*member;
    std::string_view meaning;         ///< description, with the unit if there is one
    std::uint16_t first_version = 1;  ///< first format version that contains the field
    bool stands_apart = false;        ///< true: stored in a separate table
    bool repeats = false;             ///< true: a replay gives the same value
    bool is_result = false;           ///< true: result of an evaluation, copied to individuals that reuse it
    bool is_long = false;             ///< true: text of any length
    std::size_t width = 1;            ///< least width of a short text's column, in bytes

    [[nodiscard]] constexpr Field since(std::uint16_t version) const {
        Field field = *this;
        field.first_version = version;
        return field;
    }
    [[nodiscard]] constexpr Field separate_table() const {
        Field field = *this;
        field.stands_apart = true;
        return field;
    }
    [[nodiscard]] constexpr Field repeated() const {
        Field field = *this;
        field.repeats = true;
        return field;
    }
    [[nodiscard]] constexpr Field result() const {
        Field field = *this;
        field.is_result = true;
        return field;
    }
    /// Sets the least width of a text column. A table to which rows are appended later needs text columns of constant
    /// width.
    [[nodiscard]] constexpr Field of_width(std::size_t bytes) const {
        Field field = *this;
        field.width = bytes;
        return field;
    }
    [[nodiscard]] constexpr Field long_text() const {
        Field field = *this;
        field.is_long = true;
        return field;
    }
};
template <class Struct, class Member>
Field(std::string_view, Member Struct::*, std::string_view) -> Field<Struct, Member>;

/// A struct with a field list. `constexpr auto fields_of(const T*)`, found by argument-dependent lookup, returns a
/// tuple of Fields in the order of their bytes.
template <class T>
concept Recorded = requires(const T* object) {
    fields_of(object);
};

/// The list of T's Fields. The list is a compile-time constant, because the serialization of every individual uses it.
template <Recorded T>
inline constexpr auto field_list = fields_of(static_cast<const T*>(nullptr));

/// Calls `visit` with each Field of T.
template <Recorded T, class Visit>
constexpr void for_each_field(Visit visit) {
    std::apply([&visit](const auto&... field) { (visit(field), ...); }, field_list<T>);
}

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
/// True for a vector of trivially copyable elements, which is serialized as one block of bytes.
template <class T>
inline constexpr bool is_plain_list = false;
template <class T>
inline constexpr bool is_plain_list<std::vector<T>> = std::is_trivially_copyable_v<T>;

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t count>
inline constexpr bool is_std_array<std::array<T, count>> = true;

template <class T>
inline constexpr bool is_boxed = false;
template <class T>
inline constexpr bool is_boxed<Boxed<T>> = true;
/// Returns the value in a Boxed; a mutable reference if the Boxed is mutable.
template <class T>
[[nodiscard]] const T& unboxed(const Boxed<T>& box) {
    return *box;
}
template <class T>
[[nodiscard]] T& unboxed(Boxed<T>& box) {
    return box.edit();
}

/// A column of a table, with the properties of its Field.
struct Column {
    std::string name;
    std::uint16_t first_version = 1;
    bool is_long = false;
    std::size_t width = 1;
};

namespace detail {

template <class T, class Get, class Visit>
void for_each_column(const Column& column, Get get, const Visit& visit) {
    if constexpr (Recorded<T>) {
        for_each_field<T>([&](const auto& field) {
            if (!field.stands_apart) {
                using Member = std::remove_cvref_t<decltype(std::declval<T&>().*field.member)>;
                for_each_column<Member>(
                    {std::string(field.name), std::max(column.first_version, field.first_version), field.is_long,
                     field.width},
                    [ get, member = field.member ](auto& object) -> auto& { return get(object).*member; }, visit);
            }
        });
    } else if constexpr (is_boxed<T>) {
        for_each_column<typename T::value_type>(
            column, [get](auto& object) -> auto& { return unboxed(get(object)); }, visit);
    } else if constexpr (is_std_array<T>) {
        for (std::size_t i = 0; i < std::tuple_size_v<T>; ++i) {
            for_each_column<typename T::value_type>(
                {column.name + "_" + std::to_string(i + 1), column.first_version, column.is_long, column.width},
                [ get, i ](auto& object) -> auto& { return get(object)[i]; }, visit);
        }
    } else if constexpr (!is_list<T>) {
        visit(column, get);
    }
}

}  // namespace detail

/// Calls `visit(column, get)` for each column of a table of T. `get(object)` returns a reference to the column's value:
/// a number, a text, a word or an id. A nested struct gives its own columns, and an array gives the columns name_1,
/// name_2 … Lists and fields in separate tables give no columns.
template <Recorded T, class Visit>
void for_each_column(const Visit& visit) {
    detail::for_each_column<T>(
        {}, [](auto& object) -> auto& { return object; }, visit);
}

/// Returns the number of members of an aggregate, up to 40.
template <class T>
[[nodiscard]] consteval std::size_t member_count();

/// Returns true if two entries of a field list have the same name or the same member.
template <class A, class B>
[[nodiscard]] constexpr bool share_name_or_member(const A& a, const B& b) {
    if constexpr (std::same_as<A, B>) {
        return a.name == b.name || a.member == b.member;
    }
    return a.name == b.name;
}

/// Returns true if no name and no member occurs twice in T's field list.
template <Recorded T>
[[nodiscard]] consteval bool entries_differ() {
    return std::apply(
        [](const auto&... field) {
            const auto alike = [&](const auto& one) { return (int{share_name_or_member(one, field)} + ...); };
            return ((alike(field) == 1) && ...);
        },
        field_list<T>);
}

/// True if T's field list has one entry, with a unique name, for each member of T.
template <Recorded T>
inline constexpr bool lists_every_member =
    std::tuple_size_v<decltype(fields_of(static_cast<const T*>(nullptr)))> == member_count<T>() && entries_differ<T>();

/// Returns true if two values of recorded types are bitwise equal; a NaN equals the same NaN.
template <class T>
[[nodiscard]] bool same_bits(const T& a, const T& b) {
    if constexpr (Recorded<T>) {
        return std::apply([&](const auto&... field) { return (same_bits(a.*field.member, b.*field.member) && ...); },
                          field_list<T>);
    } else if constexpr (is_std_array<T>) {
        return std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) { return same_bits(x, y); });
    } else if constexpr (std::same_as<T, double>) {
        return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    } else {
        return a == b;
    }
}

/// Frees every Boxed that holds T{}. Reading a value allocates all of its boxes, even if they hold T{}.
template <class T>
void shrink(T& value) {
    if constexpr (Recorded<T>) {
        for_each_field<T>([&](const auto& field) { shrink(value.*field.member); });
    } else if constexpr (is_boxed<T>) {
        if (value.is_held() && same_bits(*value, *T())) {
            value = T();
        }
    }
}

/// Appends a value: text and lists with their length first, recorded structs field by field, enumerators as one byte.
template <class T>
void put_value(ByteWriter& writer, const T& value) {
    if constexpr (Recorded<T>) {
        for_each_field<T>([&](const auto& field) { put_value(writer, value.*field.member); });
    } else if constexpr (is_boxed<T>) {
        put_value(writer, *value);
    } else if constexpr (std::same_as<T, std::string>) {
        writer.put_text(value);
    } else if constexpr (is_plain_list<T>) {
        writer.put_all(std::span<const typename T::value_type>(value));
    } else if constexpr (is_list<T>) {
        writer.put(static_cast<std::uint32_t>(value.size()));
        for (const auto& one : value) {
            put_value(writer, one);
        }
    } else if constexpr (EnumWithWords<T> || std::same_as<T, bool>) {
        writer.put(static_cast<std::uint8_t>(value));
    } else {
        writer.put(value);
    }
}

/// Returns the last format version that added a field to T, or to the elements of a list; 1 for other types.
template <class T>
[[nodiscard]] consteval std::uint16_t last_version() {
    std::uint16_t last = 1;
    if constexpr (Recorded<T>) {
        for_each_field<T>([&last](const auto& field) { last = std::max(last, field.first_version); });
    } else if constexpr (is_list<T>) {
        last = last_version<typename T::value_type>();
    }
    return last;
}

/// Reads a value that put_value() wrote in format `version`. Fields that `version` does not have keep their values.
/// Throws FileError.
template <class T>
void get_value(ByteReader& reader, T& value, std::uint16_t version) {
    if constexpr (Recorded<T>) {
        for_each_field<T>([&](const auto& field) {
            if (field.first_version <= version) {
                get_value(reader, value.*field.member, version);
            }
        });
    } else if constexpr (is_boxed<T>) {
        get_value(reader, value.edit(), version);
        shrink(value);
    } else if constexpr (std::same_as<T, std::string>) {
        value = reader.get_text();
    } else if constexpr (is_list<T>) {
        if constexpr (is_plain_list<T>) {
            if (version >= last_version<T>()) {
                value = reader.get_all<typename T::value_type>();
                return;
            }
        }
        value.clear();
        for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
            get_value(reader, value.emplace_back(), version);
        }
    } else if constexpr (EnumWithWords<T>) {
        const auto place = reader.get<std::uint8_t>();
        if (place >= words_of(T{}).size()) {
            throw FileError("a word that this program does not know: number " + std::to_string(place));
        }
        value = static_cast<T>(place);
    } else if constexpr (std::same_as<T, bool>) {
        value = reader.get<std::uint8_t>() != 0;
    } else {
        value = reader.get<T>();
    }
}

namespace detail {

struct Anything {
    template <class T>
    operator T() const;
};

template <class T, std::size_t... index>
constexpr bool takes(std::index_sequence<index...>) {
    return requires {
        T{(static_cast<void>(index), Anything{})...};
    };
}

}  // namespace detail

template <class T>
consteval std::size_t member_count() {
    constexpr auto first_taken = []<std::size_t... less>(std::index_sequence<less...>) {
        std::size_t count = 0;
        static_cast<void>(
            ((detail::takes<T>(std::make_index_sequence<40 - less>()) && (count = 40 - less, true)) || ...));
        return count;
    };
    return first_taken(std::make_index_sequence<40>());
}

}  // namespace finch
