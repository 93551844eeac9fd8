#include "finch/base/words.hpp"

#include <doctest/doctest.h>

using finch::printable;
using finch::printable_line;

TEST_CASE("printable keeps valid UTF-8 sequences of every length") {
    for (const char* text : {"", "plain\n\ttext", "ä", "€ ”", "\xF0\x9F\x90\xA6", "\xF4\x8F\xBF\xBF", "\xEE\x80\x80"}) {
        CHECK(printable(text) == text);
    }
}

TEST_CASE("printable replaces each control character and each byte of invalid UTF-8 by a question mark") {
    using namespace std::string_view_literals;
    CHECK(printable("\x1B[31m red\r\x7F") == "?[31m red??");
    CHECK(printable("a\0b"sv) == "a?b");
    CHECK(printable("\xFF\xFE x") == "?? x");
    CHECK(printable("\xC3") == "?");       // truncated
    CHECK(printable("\xE2\x82") == "??");  // truncated
    CHECK(printable("\xE2\x82z") == "??z");
    CHECK(printable("\xC0\x80") == "??");       // overlong encoding
    CHECK(printable("\xE0\x9F\xBF") == "???");  // overlong encoding
    CHECK(printable("\xED\xA0\x80") == "???");  // surrogate
    CHECK(printable("\xF4\x90\x80\x80") == "????");
    CHECK(printable("\xF5\x80\x80\x80") == "????");
}

TEST_CASE("printable replaces control characters that change the direction or line of text") {
    CHECK(printable("a\u009Bb\u202Ec\u2028d\u2066e\u00A0f") == "a?b?c?d?e\u00A0f");
}

TEST_CASE("printable_line also replaces line breaks and tabs") {
    CHECK(printable_line("a\nb\tc\x1B") == "a?b?c?");
}
