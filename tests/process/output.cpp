#include "finch/process/output.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace finch::process;

namespace {

std::string digits(std::size_t count) {
    std::string text(count, ' ');
    for (std::size_t i = 0; i < count; ++i) {
        text[i] = static_cast<char>('0' + i * 7 % 10);
    }
    return text;
}

std::string kept(const std::string& text, std::size_t bytes, std::size_t piece) {
    KeptText keeper(bytes);
    for (std::size_t at = 0; at < text.size(); at += piece) {
        keeper.append(std::string_view(text).substr(at, piece));
    }
    return keeper.text();
}

std::vector<std::string> lines(const std::string& text, std::size_t piece) {
    LineSplitter splitter;
    for (std::size_t at = 0; at < text.size(); at += piece) {
        splitter.append(std::string_view(text).substr(at, piece));
    }
    splitter.finish();
    return splitter.take();
}

}  // namespace

TEST_CASE("KeptText: keeps a whole text up to the limit, and only the start and the end of a longer text") {
    for (const std::size_t piece : {1U, 3U, 50U, 99U, 100U, 101U, 1000U}) {
        for (const std::size_t size : {0U, 1U, 50U, 99U, 100U, 101U, 149U, 150U, 151U, 200U, 1000U}) {
            CAPTURE(piece);
            CAPTURE(size);
            const std::string text = digits(size);
            const std::string cut = text.substr(0, 50) + "\n… " + std::to_string(size > 100 ? size - 100 : 0) +
                                    " bytes left out …\n" + text.substr(size > 50 ? size - 50 : 0);
            CHECK(kept(text, 100, piece) == (size <= 100 ? text : cut));
        }
    }
    CHECK(kept("abc", 0, 1) == "\n… 3 bytes left out …\n");
}

TEST_CASE("LineSplitter: the lines do not depend on the sizes of the pieces") {
    const std::vector<std::string> expected{"one", "", "three", "", "1/2 |#|", "2/2 |##|", "five", "", "last"};
    for (std::size_t piece = 1; piece < 20; ++piece) {
        CHECK(lines("one\n\nthree\n\r1/2 |#|\r2/2 |##|\rfive\r\n\nlast", piece) == expected);
    }
}

TEST_CASE("LineSplitter: an unfinished line is returned when it is complete") {
    LineSplitter splitter;
    splitter.append("whole\nha");
    CHECK(splitter.take() == std::vector<std::string>{"whole"});
    CHECK_FALSE(splitter.has_lines());
    splitter.append("lf\n");
    CHECK(splitter.take() == std::vector<std::string>{"half"});
    splitter.finish();
    CHECK_FALSE(splitter.has_lines());
}

TEST_CASE("LineSplitter: a long line is cut and marked, the next line is complete") {
    const std::string long_line = digits(LineSplitter::longest_line + 1234);
    const std::vector<std::string> expected{digits(LineSplitter::longest_line) + " … 1234 bytes left out",
                                            digits(LineSplitter::longest_line), "next"};
    for (const std::size_t piece : {1U, 1000U, 70000U}) {
        CHECK(lines(long_line + "\n" + digits(LineSplitter::longest_line) + "\nnext\n", piece) == expected);
    }
}
