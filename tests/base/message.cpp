#include "finch/base/message.hpp"

#include "finch/base/error.hpp"

#include <cstdint>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

using namespace finch;

namespace {

struct Part {
    std::string name;
    std::vector<bool> flags = {};
    double size = 0;
    bool operator==(const Part&) const = default;
};
struct Whole {
    std::int64_t number = 0;
    std::vector<Part> parts = {};
    std::map<std::string, std::string> words = {};
    std::vector<double> values = {};
    bool is_set = false;
    bool operator==(const Whole&) const = default;
};
struct OfTen {
    std::string a;
    int b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, i = 0;
    std::string j = {};
    bool operator==(const OfTen&) const = default;
};

struct Listed {
    std::string a;
    double b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, i = 0, j = 0, k = 0;
    std::vector<double> l = {};
    bool operator==(const Listed&) const = default;
};
constexpr auto fields_of(const Listed*) {
    return std::tuple{Field{"a", &Listed::a, ""}, Field{"k", &Listed::k, ""}, Field{"l", &Listed::l, ""}.since(3)};
}

}  // namespace

TEST_CASE("round trip: a list of structs with fields_of(), including fields of later versions") {
    const std::vector<Listed> two{{.a = "one", .k = 2, .l = {3, 4}}, {.a = "five"}};

    CHECK(from_message<std::vector<Listed>>(to_message(two)) == two);
}

TEST_CASE("round trip: texts, lists, maps and nested structs") {
    const Whole outer{.number = -7,
                      .parts = {{"a", {true, false, true}, 0.5}, {"", {}, 2}},
                      .words = {{"x", "y"}, {"", "z"}},
                      .values = {1, 2.5},
                      .is_set = true};

    CHECK(from_message<Whole>(to_message(outer)) == outer);
    CHECK(from_message<Whole>(to_message(Whole{})) == Whole{});
    CHECK(from_message<int>(to_message(5)) == 5);
    const OfTen ten{"first", 1, 2, 3, 4, 5, 6, 7, 8, "last"};
    CHECK(from_message<OfTen>(to_message(ten)) == ten);
}

TEST_CASE("a message that is truncated at any byte throws FileError") {
    const std::string whole = to_message(Part{"a name", {true, true}, 1});
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CHECK_THROWS_AS(static_cast<void>(from_message<Part>(whole.substr(0, size))), FileError);
    }
}
