#include "finch/evaluate/programs.hpp"

#include <doctest/doctest.h>

using namespace finch::evaluate;

TEST_CASE("last_lines: returns at most ten lines and 1500 bytes, without trailing white space") {
    std::string text;
    for (int i = 0; i < 20; ++i) {
        text += std::to_string(i) + "\n";
    }

    CHECK(last_lines(text + " \n\n") == "10\n11\n12\n13\n14\n15\n16\n17\n18\n19");
    CHECK(last_lines("a\n\nb") == "a\n\nb");
    CHECK(last_lines(std::string(5000, 'x') + "\nlast") == std::string(1495, 'x') + "\nlast");
    CHECK(last_lines("\n \r\n").empty());
}

TEST_CASE("last_lines: leaves out rows of dashes and equal signs, but keeps negative numbers") {
    const std::string row(74, '-');

    CHECK(last_lines(row + "\nmpirun noticed that rank 0 exited on signal 4.\n\n" + row + "\n") ==
          "mpirun noticed that rank 0 exited on signal 4.");
    CHECK(last_lines("=== summary ===\n  ====  ====\n-1\n") == "=== summary ===\n-1");
    CHECK(last_lines(row + "\n" + row).empty());
}

TEST_CASE("last_lines: keeps only the last state of a progress bar, and removes colour codes") {
    std::string bar;
    for (int percent = 0; percent < 100; ++percent) {
        bar += "\r" + std::to_string(percent) + "%|####|";
    }

    CHECK(last_lines("begins\r\n" + bar + "\nValueError: x\r\n") == "begins\n99%|####|\nValueError: x");
    CHECK(last_lines("\x1b[31mValueError\x1b[0m: \x1b[1mx\x1b[m\n") == "ValueError: x");
    CHECK(last_lines(bar + "\r") == "99%|####|");
    CHECK(last_lines("a\x01") == "a?");
}
