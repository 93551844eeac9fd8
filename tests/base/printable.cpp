#include "finch/base/words.hpp"

#include <doctest/doctest.h>

using finch::printable;
using finch::printable_line;

TEST_CASE("text stays as it is, in every length of UTF-8") {
    for (const char* text : {"", "plain\n\ttext", "ä", "€ ”", "\xF0\x9F\x90\xA6", "\xF4\x8F\xBF\xBF", "\xEE\x80\x80"}) {
        CHECK(printable(text) == text);
    }
}

TEST_CASE("control characters and bytes that are no UTF-8 become question marks, one for each byte") {
    using namespace std::string_view_literals;
    CHECK(printable("\x1B[31m red\r\x7F") == "?[31m red??");
    CHECK(printable("a\0b"sv) == "a?b");
    CHECK(printable("\xFF\xFE x") == "?? x");
    CHECK(printable("\xC3") == "?");       // cut off
    CHECK(printable("\xE2\x82") == "??");  // cut off
    CHECK(printable("\xE2\x82z") == "??z");
    CHECK(printable("\xC0\x80") == "??");       // too long a form
    CHECK(printable("\xE0\x9F\xBF") == "???");  // too long a form
    CHECK(printable("\xED\xA0\x80") == "???");  // a surrogate
    CHECK(printable("\xF4\x90\x80\x80") == "????");
    CHECK(printable("\xF5\x80\x80\x80") == "????");
}

TEST_CASE("what moves or turns the text beside it is a question mark") {
    CHECK(printable("a\u009Bb\u202Ec\u2028d\u2066e\u00A0f") == "a?b?c?d?e\u00A0f");
}

TEST_CASE("printable_line: one line of it") {
    CHECK(printable_line("a\nb\tc\x1B") == "a?b?c?");
}
