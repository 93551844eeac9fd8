#include "finch/hdf5/table.hpp"

#include "finch/base/format.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace finch::hdf5 {
namespace {

using Raw = std::vector<char>;

/// How one column lies in a row.
struct Field {
    Hid type;
    std::size_t size = 0;
    std::size_t offset = 0;
};

std::size_t rows_of(const Column& column) {
    return std::visit(
        [](const auto& values) {
            if constexpr (std::is_same_v<std::decay_t<decltype(values)>, EnumValues>) {
                return values.values.size();
            } else {
                return values.size();
            }
        },
        column.values);
}

Hid number_type(hid_t native) {
    return Hid(check(H5Tcopy(native), "H5Tcopy"));
}

Hid type_of(const std::vector<double>&) {
    return number_type(H5T_NATIVE_DOUBLE);
}
Hid type_of(const std::vector<std::int64_t>&) {
    return number_type(H5T_NATIVE_INT64);
}
Hid type_of(const std::vector<std::uint64_t>&) {
    return number_type(H5T_NATIVE_UINT64);
}
Hid type_of(const std::vector<std::int32_t>&) {
    return number_type(H5T_NATIVE_INT32);
}

Hid type_of(const std::vector<std::string>& texts) {
    std::size_t longest = 1;
    for (const std::string& text : texts) {
        longest = std::max(longest, text.size());
    }
    Hid type(check(H5Tcopy(H5T_C_S1), "H5Tcopy"));
    check(H5Tset_size(type.get(), longest), "H5Tset_size");
    check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "H5Tset_strpad");
    check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset");
    return type;
}

Hid type_of(const EnumValues& values) {
    Hid type(check(H5Tenum_create(H5T_NATIVE_INT32), "H5Tenum_create"));
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(values.names.size()); ++i) {
        check(H5Tenum_insert(type.get(), values.names[static_cast<std::size_t>(i)].c_str(), &i), "H5Tenum_insert");
    }
    return type;
}

template <class T>
void scatter(const std::vector<T>& values, const Field& field, std::size_t row_size, Raw& rows) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::memcpy(rows.data() + i * row_size + field.offset, &values[i], sizeof(T));
    }
}

void scatter(const std::vector<std::string>& values, const Field& field, std::size_t row_size, Raw& rows) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::memcpy(rows.data() + i * row_size + field.offset, values[i].data(),
                    std::min(values[i].size(), field.size));
    }
}

void scatter(const EnumValues& values, const Field& field, std::size_t row_size, Raw& rows) {
    scatter(values.values, field, row_size, rows);
}

template <class T>
std::vector<T> gather(const Raw& rows, std::size_t row_size, std::size_t offset) {
    std::vector<T> values(row_size == 0 ? 0 : rows.size() / row_size);
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::memcpy(&values[i], rows.data() + i * row_size + offset, sizeof(T));
    }
    return values;
}

std::vector<std::string> gather_texts(const Raw& rows, std::size_t row_size, const Field& field) {
    std::vector<std::string> texts(rows.size() / row_size);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const char* text = rows.data() + i * row_size + field.offset;
        texts[i].assign(text, ::strnlen(text, field.size));
    }
    return texts;
}

EnumValues gather_enum(const Raw& rows, std::size_t row_size, const Field& field) {
    EnumValues values;
    const int members = H5Tget_nmembers(field.type.get());
    for (int i = 0; i < members; ++i) {
        char* name = H5Tget_member_name(field.type.get(), static_cast<unsigned>(i));
        values.names.emplace_back(name);
        H5free_memory(name);
    }
    values.values = gather<std::int32_t>(rows, row_size, field.offset);
    return values;
}

Column read_column(const std::string& name, const Field& field, const Raw& rows, std::size_t row_size) {
    switch (H5Tget_class(field.type.get())) {
        case H5T_FLOAT:
            return {name, gather<double>(rows, row_size, field.offset)};
        case H5T_STRING:
            return {name, gather_texts(rows, row_size, field)};
        case H5T_ENUM:
            return {name, gather_enum(rows, row_size, field)};
        default:
            break;
    }
    if (field.size == 4) {
        return {name, gather<std::int32_t>(rows, row_size, field.offset)};
    }
    if (H5Tget_sign(field.type.get()) == H5T_SGN_NONE) {
        return {name, gather<std::uint64_t>(rows, row_size, field.offset)};
    }
    return {name, gather<std::int64_t>(rows, row_size, field.offset)};
}

}  // namespace

void write_table(hid_t at, const std::string& name, const std::vector<Column>& columns) {
    std::vector<Field> fields;
    std::size_t row_size = 0;
    for (const Column& column : columns) {
        Field field;
        field.type = std::visit([](const auto& values) { return type_of(values); }, column.values);
        field.size = H5Tget_size(field.type.get());
        field.offset = row_size;
        row_size += field.size;
        fields.push_back(std::move(field));
    }
    const Hid type(check(H5Tcreate(H5T_COMPOUND, row_size), "type of " + name));
    const std::size_t count = columns.empty() ? 0 : rows_of(columns.front());
    Raw rows(count * row_size);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (rows_of(columns[i]) != count) {
            throw ApiError(fmt::format("table {}: column {} has another length", name, columns[i].name));
        }
        check(H5Tinsert(type.get(), columns[i].name.c_str(), fields[i].offset, fields[i].type.get()),
              fmt::format("column {} of {} (too many columns?)", columns[i].name, name));
        std::visit([&](const auto& values) { scatter(values, fields[i], row_size, rows); }, columns[i].values);
    }
    const hsize_t extent = count;
    const Hid space(check(H5Screate_simple(1, &extent, nullptr), "H5Screate_simple"));
    const Hid dataset(
        check(H5Dcreate2(at, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
              "dataset " + name));
    if (count > 0) {
        check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data()), "dataset " + name);
    }
}

std::vector<Column> read_table(hid_t at, const std::string& name) {
    const Hid dataset(H5Dopen2(at, name.c_str(), H5P_DEFAULT));
    if (!dataset) {
        throw FileError(fmt::format("there is no dataset '{}'", name));
    }
    const Hid type(check(H5Dget_type(dataset.get()), "type of " + name));
    const Hid space(check(H5Dget_space(dataset.get()), "dataset " + name));
    const std::size_t row_size = H5Tget_size(type.get());
    Raw rows(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())) * row_size);
    if (!rows.empty()) {
        check(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data()), "dataset " + name);
    }
    std::vector<Column> columns;
    for (unsigned i = 0; i < static_cast<unsigned>(H5Tget_nmembers(type.get())); ++i) {
        Field field;
        field.type = Hid(check(H5Tget_member_type(type.get(), i), "type of " + name));
        field.size = H5Tget_size(field.type.get());
        field.offset = H5Tget_member_offset(type.get(), i);
        char* column = H5Tget_member_name(type.get(), i);
        columns.push_back(read_column(column, field, rows, row_size));
        H5free_memory(column);
    }
    return columns;
}

}  // namespace finch::hdf5
