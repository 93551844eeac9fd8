#pragma once

#include "finch/base/error.hpp"
#include "finch/base/fields.hpp"
#include "finch/base/format.hpp"
#include "finch/base/named_array.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace finch::train {

/// Calls `visit(name, member, values)` with each number of a Row that version 1 of its bytes has not; in a snapshot it
/// is an array of its own, whose values are of the type of the empty `values`.
template <Recorded Row, class Visit>
void for_each_later_field(const Visit& visit) {
    for_each_field<Row>([&](const auto& field) {
        using Member = std::remove_cvref_t<decltype(std::declval<Row&>().*field.member)>;
        static_assert(std::is_arithmetic_v<Member>, "a snapshot has numbers alone");
        if (field.first_version > 1) {
            visit("epoch_" + std::string(field.name), field.member,
                  std::vector<std::conditional_t<std::is_floating_point_v<Member>, double, std::int64_t>>());
        }
    });
}

template <Recorded Row>
void append_later_fields(NamedArrays& snapshot, std::span<const Row> rows) {
    for_each_later_field<Row>([&](std::string name, auto member, auto values) {
        for (const Row& row : rows) {
            values.push_back(row.*member);
        }
        snapshot.push_back({std::move(name), {std::ssize(rows)}, std::move(values)});
    });
}

/// Fills in `rows`; what the snapshot, of an earlier version, has not stays as it is. Throws FileError.
template <Recorded Row>
void read_later_fields(const NamedArrays& snapshot, std::span<Row> rows) {
    for_each_later_field<Row>([&](const std::string& name, auto member, const auto& empty) {
        const auto array = std::ranges::find(snapshot, name, &NamedArray::name);
        if (array == snapshot.end()) {
            return;
        }
        const auto* values = std::get_if<std::remove_cvref_t<decltype(empty)>>(&array->values);
        if (values == nullptr || values->size() != rows.size()) {
            throw FileError(fmt::format("the snapshot's array {} is not {} numbers", name, rows.size()));
        }
        for (std::size_t i = 0; i < rows.size(); ++i) {
            rows[i].*member = static_cast<std::remove_reference_t<decltype(rows[i].*member)>>((*values)[i]);
        }
    });
}

}  // namespace finch::train
