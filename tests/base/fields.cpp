#include "finch/base/fields.hpp"

#include <doctest/doctest.h>

namespace {

using namespace finch;

enum class Colour : std::uint8_t { red, green };
constexpr std::array<std::string_view, 2> words_of(Colour) {
    return {"red", "green"};
}
struct Key {
    std::uint64_t value = 0;
    bool operator==(const Key&) const = default;
};
struct Inner {
    std::int32_t a = 1;
    double b = 2;
    bool operator==(const Inner&) const = default;
};
constexpr auto fields_of(const Inner*) {
    return std::tuple{Field{"a", &Inner::a, ""}, Field{"b", &Inner::b, ""}};
}
struct Outer {
    Key id;
    std::array<Key, 2> parents{};
    Colour colour = Colour::red;
    std::string text;
    std::vector<double> list;
    bool flag = false;
    Inner inner;
    std::string note;
    bool operator==(const Outer&) const = default;
};
constexpr auto fields_of(const Outer*) {
    return std::tuple{
        Field{"id", &Outer::id, ""},
        Field{"parent", &Outer::parents, ""},
        Field{"colour", &Outer::colour, ""},
        Field{"text", &Outer::text, ""}.long_text(),
        Field{"list", &Outer::list, ""},
        Field{"flag", &Outer::flag, ""}.repeated(),
        Field{"inner", &Outer::inner, ""}.since(2),
        Field{"note", &Outer::note, ""}.separate_table(),
    };
}

struct WithBox {
    std::uint64_t number = 0;
    Boxed<Inner> inner;
};
constexpr auto fields_of(const WithBox*) {
    return std::tuple{Field{"number", &WithBox::number, ""}, Field{"inner", &WithBox::inner, ""}.since(2)};
}

struct Point {
    double x = 0;
    double y = 7;
    bool operator==(const Point&) const = default;
};
constexpr auto fields_of(const Point*) {
    return std::tuple{Field{"x", &Point::x, ""}, Field{"y", &Point::y, ""}.since(2)};
}

struct Short {
    int a = 0;
    int b = 0;
};
constexpr auto fields_of(const Short*) {
    return std::tuple{Field{"a", &Short::a, ""}};
}
struct Twice {
    int a = 0;
    int b = 0;
};
constexpr auto fields_of(const Twice*) {
    return std::tuple{Field{"a", &Twice::a, ""}, Field{"b", &Twice::a, ""}};
}
struct SameName {
    int a = 0;
    int b = 0;
};
constexpr auto fields_of(const SameName*) {
    return std::tuple{Field{"a", &SameName::a, ""}, Field{"a", &SameName::b, ""}};
}

Outer some() {
    return {{7}, {Key{8}, Key{9}}, Colour::green, "words", {0.5, 0.25}, true, {3, 4}, "apart"};
}

Outer read(const Bytes& bytes, std::uint16_t version) {
    ByteReader reader(bytes);
    Outer outer;
    get_value(reader, outer, version);
    CHECK(reader.left() == 0);
    return outer;
}

TEST_CASE("lists_every_member is false if a member is missing or a member or name occurs twice") {
    CHECK(lists_every_member<Outer>);
    CHECK(lists_every_member<Inner>);
    CHECK(!lists_every_member<Short>);
    CHECK(!lists_every_member<Twice>);
    CHECK(!lists_every_member<SameName>);
    CHECK(member_count<Outer>() == 8);
}

TEST_CASE("bytes: all members round-trip, and the bytes have no padding") {
    Bytes bytes;
    ByteWriter writer(bytes);

    put_value(writer, some());

    CHECK(bytes.size() == 8 + 16 + 1 + (4 + 5) + (4 + 16) + 1 + (4 + 8) + (4 + 5));
    CHECK(read(bytes, 2) == some());
}

TEST_CASE("bytes of an older version: a list of structs without padding, to which a later version added a member") {
    struct OldPoint {
        double x = 0;
    };
    Bytes bytes;
    ByteWriter writer(bytes);
    const std::vector<OldPoint> old{{1.5}, {2.5}};
    writer.put_all(std::span<const OldPoint>(old));
    const std::vector<Point> present{{3, 4}};
    put_value(writer, present);
    ByteReader reader(bytes);
    std::vector<Point> first;
    std::vector<Point> second;

    get_value(reader, first, 1);
    get_value(reader, second, 2);

    CHECK(first == std::vector<Point>{{1.5, 7}, {2.5, 7}});
    CHECK(second == present);
    CHECK(reader.left() == 0);
}

TEST_CASE("bytes of an older version: members that this version lacked keep their values") {
    Bytes bytes;
    ByteWriter writer(bytes);
    for_each_field<Outer>([&](const auto& field) {
        if (field.first_version == 1) {
            put_value(writer, some().*field.member);
        }
    });

    const Outer old = read(bytes, 1);

    CHECK(old.inner == Inner{});
    CHECK(old.note == "apart");
}

TEST_CASE("bytes: an unknown enumerator and truncated bytes throw FileError") {
    Bytes bytes;
    ByteWriter writer(bytes);
    put_value(writer, some());
    Bytes odd = bytes;
    odd[24] = std::byte{2};
    const Bytes torn(bytes.begin(), bytes.end() - 1);

    CHECK_THROWS_AS(static_cast<void>(read(odd, 2)), FileError);
    CHECK_THROWS_AS(static_cast<void>(read(torn, 2)), FileError);
}

TEST_CASE("a Boxed is stored like its value, and holds no object if the value is the default") {
    WithBox plain{1, {}};
    WithBox changed{2, Inner{3, -0.0}};
    Bytes bytes;
    ByteWriter writer(bytes);
    put_value(writer, plain);
    put_value(writer, changed);
    CHECK(bytes.size() == 2 * (8 + 4 + 8));

    WithBox first;
    WithBox second;
    ByteReader reader(bytes);
    get_value(reader, first, 2);
    get_value(reader, second, 2);
    CHECK(!first.inner.is_held());
    CHECK(same_bits(*second.inner, *changed.inner));
    CHECK(!same_bits(*second.inner, Inner{3, 0.0}));

    CHECK(!plain.inner.is_held());
    std::vector<std::string> names;
    for_each_column<WithBox>([&](const Column& column, const auto& get) {
        names.push_back(column.name);
        CHECK(get(std::as_const(changed)) == get(std::as_const(second)));
        get(plain) = get(std::as_const(first));
    });
    CHECK(names == std::vector<std::string>{"number", "a", "b"});
    CHECK(plain.inner.is_held());
    shrink(plain);
    CHECK(!plain.inner.is_held());

    const WithBox copy = changed;
    changed.inner.edit().a = 4;
    CHECK(copy.inner->a == 3);
}

TEST_CASE("columns: nested structs and arrays have columns, lists and separate tables have none") {
    std::vector<std::string> names;
    std::vector<std::uint16_t> versions;
    std::vector<std::string> long_ones;
    for_each_column<Outer>([&](const Column& column, const auto&) {
        names.push_back(column.name);
        versions.push_back(column.first_version);
        if (column.is_long) {
            long_ones.push_back(column.name);
        }
    });

    CHECK(names == std::vector<std::string>{"id", "parent_1", "parent_2", "colour", "text", "flag", "a", "b"});
    CHECK(versions == std::vector<std::uint16_t>{1, 1, 1, 1, 1, 1, 2, 2});
    CHECK(long_ones == std::vector<std::string>{"text"});
}

}  // namespace
