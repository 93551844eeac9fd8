#include "finch/base/terminal.hpp"

#include "finch/base/words.hpp"

#include <doctest/doctest.h>
#include <map>
#include <string>

using namespace finch;

namespace {

Terminal in(int columns, const std::map<std::string, std::string>& variables) {
    return terminal_of(columns, [&variables](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? "" : found->second;
    });
}

}  // namespace

TEST_CASE("terminal_of: a terminal has colours, unless NO_COLOR or a dumb terminal forbids them") {
    CHECK(in(100, {}).has_colours);
    CHECK(in(100, {{"NO_COLOR", ""}}).has_colours);
    CHECK_FALSE(in(100, {{"NO_COLOR", "1"}}).has_colours);
    CHECK_FALSE(in(100, {{"NO_COLOR", "0"}}).has_colours);
    CHECK_FALSE(in(100, {{"TERM", "dumb"}}).has_colours);
    CHECK(in(100, {{"TERM", "xterm"}}).has_colours);
}

TEST_CASE("terminal_of: FORCE_COLOR gives colours to any output, but NO_COLOR wins") {
    CHECK_FALSE(in(0, {}).has_colours);
    CHECK(in(0, {{"FORCE_COLOR", "1"}}).has_colours);
    CHECK_FALSE(in(0, {{"FORCE_COLOR", ""}}).has_colours);
    CHECK_FALSE(in(0, {{"FORCE_COLOR", "0"}}).has_colours);
    CHECK_FALSE(in(0, {{"FORCE_COLOR", "1"}, {"NO_COLOR", "1"}}).has_colours);
    CHECK_FALSE(in(0, {{"FORCE_COLOR", "1"}}).can_rewrite);
}

TEST_CASE("terminal_of: lines are rewritten on a terminal only, and its width is known") {
    CHECK(in(100, {}).can_rewrite);
    CHECK(in(100, {}).columns == 100);
    CHECK_FALSE(in(100, {{"TERM", "dumb"}}).can_rewrite);
    CHECK_FALSE(in(0, {}).can_rewrite);
}

TEST_CASE("terminal_of: the first variable of the locale that is set tells whether it is UTF-8") {
    CHECK_FALSE(in(100, {}).has_unicode);
    CHECK(in(100, {{"LANG", "en_US.UTF-8"}}).has_unicode);
    CHECK(in(100, {{"LANG", "C.utf8"}}).has_unicode);
    CHECK_FALSE(in(100, {{"LANG", "en_US.UTF-8"}, {"LC_CTYPE", "POSIX"}}).has_unicode);
    CHECK(in(100, {{"LC_CTYPE", "POSIX"}, {"LC_ALL", "de_DE.UTF-8"}}).has_unicode);
}

TEST_CASE("bold is for colours only") {
    CHECK(bold("text", in(100, {})) == "\033[1mtext\033[0m");
    CHECK(bold("text", in(0, {})) == "text");
}

TEST_CASE("cut: a text of at most the given number of characters, also of several bytes") {
    CHECK(cut("████", 4) == "████");
    CHECK(cut("█████", 4) == "███…");
    CHECK(cut("abcdef", 5, Ellipsis::ascii) == "ab...");
    CHECK(cut("abcdef", 2, Ellipsis::ascii).empty());
    CHECK(cut("abcdef", 0).empty());
    CHECK(characters_in("30–40 ★") == 7);
}
