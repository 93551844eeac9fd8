#include "finch/config/tree.hpp"

#include "finch/base/error.hpp"

#include <doctest/doctest.h>
#include <string>

namespace {

using namespace finch;
using namespace finch::config;

Tree scalar(const std::string& text) {
    return {.kind = Tree::Kind::scalar, .text = text};
}

/// Returns whether two trees have the same kinds, texts, quotes, keys and items. Ignores `place`.
bool same(const Tree& a, const Tree& b) {
    if (a.kind != b.kind || a.text != b.text || a.quoted != b.quoted || a.keys != b.keys ||
        a.items.size() != b.items.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.items.size(); ++i) {
        if (!same(a.items[i], b.items[i])) {
            return false;
        }
    }
    return true;
}

TEST_CASE("parse_yaml: a value in a map has the line number of its key, and a list item has its own line number") {
    const Tree tree = parse_yaml("# a comment\na: 1\nb:\n\n  c: [x,\n     y]\n", "f.yaml");

    CHECK(tree["a"].place == "f.yaml:2");
    CHECK(tree["b"].place == "f.yaml:3");
    CHECK(tree["b"]["c"].place == "f.yaml:5");
    CHECK(tree["b"]["c"].items[0].place == "f.yaml:5");
    CHECK(tree["b"]["c"].items[1].place == "f.yaml:6");
}

TEST_CASE("parse_yaml: a duplicate key is refused; the message has its path and the lines of both occurrences") {
    CHECK_THROWS_WITH_AS((void)parse_yaml("a:\n  b: 1\n  c: 2\n  b: 3\n", "f.yaml"),
                         "f.yaml:4: a.b: duplicate key, first given at f.yaml:2; remove one", ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_yaml("a: [{b: 1, b: 1}]", "f.yaml"), doctest::Contains("a[0].b: duplicate key"),
                         ConfigError);
}

TEST_CASE("parse_yaml: invalid YAML is refused; the message has the line number") {
    CHECK_THROWS_WITH_AS((void)parse_yaml("a: 1\nb: [1, 2\nc: 3\n", "f.yaml"), doctest::Contains("f.yaml:"),
                         ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_yaml("a: 1\n\tb: 2\n", "f.yaml"), doctest::Contains("f.yaml:2: is no YAML"),
                         ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_yaml("a: 1\n---\nb: 2\n", "f.yaml"), doctest::Contains("a second document"),
                         ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_yaml("a: !!int 1\n", "f.yaml"), doctest::Contains("f.yaml:1: a: the tag"),
                         ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_yaml("[a]: 1\n", "f.yaml"), doctest::Contains("a key must be a word"),
                         ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_yaml(std::string("a: \0", 4), "f.yaml"), doctest::Contains("zero byte"),
                         ConfigError);
}

TEST_CASE("parse_yaml: deep nesting and nested aliases throw ConfigError and do not crash") {
    std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
    for (char name = 'b'; name < 'k'; ++name) {
        const std::string before(1, static_cast<char>(name - 1));
        bomb += std::string(1, name) + ": &" + name + " [";
        for (int i = 0; i < 10; ++i) {
            bomb += (i == 0 ? "*" : ", *") + before;
        }
        bomb += "]\n";
    }

    CHECK_THROWS_AS((void)parse_yaml(std::string(100000, '['), "f.yaml"), ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_yaml(bomb, "f.yaml"), doctest::Contains("more than 100000 values"), ConfigError);
}

TEST_CASE("parse_yaml: nested anchors with too many values and maps with too many keys throw ConfigError") {
    std::string nested;
    for (int depth = 0; depth < 300; ++depth) {
        nested += "[&a" + std::to_string(depth) + " ";
    }
    nested += "[";
    for (int i = 0; i < 20000; ++i) {
        nested += "x,";
    }
    nested += "]" + std::string(300, ']');
    std::string keys;
    for (int i = 0; i < 5000; ++i) {
        keys += "k" + std::to_string(i) + ": 1\n";
    }

    CHECK_THROWS_WITH_AS((void)parse_yaml(nested, "f.yaml"), doctest::Contains("more than 100000 values"), ConfigError);
    CHECK_THROWS_WITH_AS((void)parse_yaml(keys, "f.yaml"), doctest::Contains("f.yaml:4097: more than 4096 keys"),
                         ConfigError);
}

TEST_CASE("apply_setting: a path of 50001 keys is refused") {
    Tree root = parse_yaml("name: x", "f.yaml");
    std::string path = "a";
    for (int depth = 0; depth < 50000; ++depth) {
        path += ".a";
    }

    CHECK_THROWS_WITH_AS(apply_setting(root, path + "=1"), doctest::Contains("a path of 50001 keys"), ConfigError);
}

TEST_CASE("parse_yaml: an alias has the same value as its anchor") {
    const Tree tree = parse_yaml("a: &x {b: 1}\nc: *x\n", "f.yaml");

    CHECK(same(tree["a"], tree["c"]));
}

TEST_CASE("emit: parsing the emitted text gives the same tree") {
    for (const std::string yaml :
         {"a: 1\nb: {c: [1, 2], d: {}, e: []}\nf: null\n", "- x\n- {y: 1, z: [a, {b: c}]}\n- [[1], [2]]\n",
          "a: \"5\"\nb: 'it''s'\nc: \"tab\\tquote\\\" back\\\\ line\\n\"\n", "a: $gene\nb: ü\nc: 1.0e-4\nd: '-'\n",
          "a: some words\nb: 'null'\nc: ''\nd: '~'\ne: 'x: y'\n", "a: {k with space: 1}\n", "x"}) {
        const Tree tree = parse_yaml(yaml, "f.yaml");
        const Tree again = parse_yaml(emit(tree), "again");
        INFO(emit(tree));
        // emit() quotes words with spaces, so `quoted` may differ between `tree` and `again`.
        CHECK(emit(again) == emit(tree));
        CHECK(again.items.size() == tree.items.size());
    }
    CHECK(same(parse_yaml(emit(parse_yaml("a: {b: [1, x]}", "f")), "g"), parse_yaml("a: {b: [1, x]}", "f")));
}

TEST_CASE("whole_number: accepts only decimal digits with an optional minus sign") {
    CHECK(whole_number(scalar("0")) == 0);
    CHECK(whole_number(scalar("-17")) == -17);
    CHECK(whole_number(scalar("9223372036854775807")) == 9223372036854775807);
    for (const char* text : {"0x10", "010", "1e3", "1.0", "1_000", "+1", " 1", "", "-", "9223372036854775808", "nan"}) {
        CHECK_MESSAGE(!whole_number(scalar(text)), text);
    }
    Tree quoted = scalar("5");
    quoted.quoted = true;
    CHECK(!whole_number(quoted));
}

TEST_CASE("real_number: accepts finite decimal numbers, with or without an exponent") {
    CHECK(real_number(scalar("1e-4")) == 1e-4);
    CHECK(real_number(scalar("1.0E+2")) == 100);
    CHECK(real_number(scalar("-0.5")) == -0.5);
    CHECK(real_number(scalar("3")) == 3);
    for (const char* text : {"nan", ".nan", "inf", ".inf", "-.inf", "1e999", "0x10", "1,5", "1.2.3", "", "1e", "one"}) {
        CHECK_MESSAGE(!real_number(scalar(text)), text);
    }
}

TEST_CASE("flag: accepts only true and false") {
    CHECK(flag(scalar("true")) == true);
    CHECK(flag(scalar("false")) == false);
    for (const char* text : {"yes", "no", "on", "off", "True", "1", ""}) {
        CHECK_MESSAGE(!flag(scalar(text)), text);
    }
}

TEST_CASE("apply_setting: replaces and adds values in maps and lists") {
    Tree tree = parse_yaml("a: {b: 1}\nl: [{k: 1}, x]\nw: word\n", "f.yaml");

    apply_setting(tree, "a.b=2");
    apply_setting(tree, "a.c.d=[1, 2]");
    apply_setting(tree, "l[0].k=5");
    apply_setting(tree, "l.1.m=6");
    apply_setting(tree, "l.2=y");
    apply_setting(tree, "w.v=7");
    apply_setting(tree, "e==");

    CHECK(same(tree, parse_yaml("{a: {b: 2, c: {d: [1, 2]}}, l: [{k: 5}, {m: 6}, y], w: {v: 7}, e: '='}", "g")) ==
          false);  // the value is an unquoted =
    CHECK(same(tree, parse_yaml("{a: {b: 2, c: {d: [1, 2]}}, l: [{k: 5}, {m: 6}, y], w: {v: 7}, e: =}", "g")));
    CHECK(tree["a"]["b"].place == "--set a.b");
    CHECK(tree["a"]["c"]["d"].items[0].place == "--set a.c.d");
}

TEST_CASE("apply_setting: a text without path.to.key=value or with an invalid path or value is refused") {
    Tree tree = parse_yaml("a: [1]", "f.yaml");

    CHECK_THROWS_WITH_AS(apply_setting(tree, "a"), "--set a: expected path.to.key=value", ConfigError);
    CHECK_THROWS_WITH_AS(apply_setting(tree, "=1"), doctest::Contains("expected path.to.key=value"), ConfigError);
    CHECK_THROWS_WITH_AS(apply_setting(tree, "a..b=1"), doctest::Contains("expected path.to.key=value"), ConfigError);
    CHECK_THROWS_WITH_AS(apply_setting(tree, "a.5=1"), doctest::Contains("accepted: 0 to 1"), ConfigError);
    CHECK_THROWS_WITH_AS(apply_setting(tree, "a.b=1"), doctest::Contains("is no item of this list"), ConfigError);
    CHECK_THROWS_WITH_AS(apply_setting(tree, "a=[1"), doctest::Contains("--set a"), ConfigError);
}

}  // namespace
