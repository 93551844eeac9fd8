#include "simulate/tables.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::simulate;

namespace {

config::Config config_of(const std::string& objective) {
    return config::parse("search: {objective: {function: " + objective + "}}", "test.yaml");
}

const Options options{12, {60, 0.5}, 0.0006};
const Result result{4, 100, 0.125, 1.5, 0.75, 250, 2048, 3 << 20, 0.5};

std::size_t words(const std::string& line) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        count += !std::isspace(line[i]) && (i == 0 || std::isspace(line[i - 1])) ? 1 : 0;
    }
    return count;
}

}  // namespace

TEST_CASE("quantile: interpolates linearly between the sorted values and ignores NaN") {
    CHECK(quantile({3, 1, 2}, 0.5) == 2);
    CHECK(quantile({4, 1, 3, 2}, 0.5) == 2.5);
    CHECK(quantile({4, 1, 3, 2}, 0.25) == 1.75);
    CHECK(quantile({1, NAN, 2}, 1) == 2);
    CHECK(quantile({5}, 0.75) == 5);
    CHECK(std::isnan(quantile({}, 0.5)));
}

TEST_CASE("csv_row: one row per seed, with all digits of the loss") {
    const config::Config config = config_of("sphere, dimensions: 3");
    Result exact = result;
    exact.best = 0.1 + 0.2;

    CHECK(csv_heading() == "function,dimensions,seed,workers,evaluations,best,busy_fraction\n");
    CHECK(csv_row(config, options, exact) == "sphere,3,4,12,100,0.30000000000000004,0.75\n");
}

TEST_CASE("heading: describes the simulation, and every row has the columns of the heading") {
    const std::string heading_text = heading(config_of("sphere, dimensions: 3, rotate: true, instance: 6"), options);

    CHECK(heading_text.find("function sphere, dimensions 3, rotated, instance 6; workers 12, islands 1\n") == 0);
    Options many = options;
    many.workers = 600;
    CHECK(heading(config_of("sphere"), many).find("; workers 600, islands 3\n") != std::string::npos);
    CHECK(heading_text.find("60 s (median; log-normal, deviation 0.5), a message 0.6 ms") != std::string::npos);
    CHECK(heading_text.find("estimated") != std::string::npos);
    const std::string columns = heading_text.substr(heading_text.find("seed"));
    CHECK(words(columns) == 12);      // "of rank 0" and "wall s" consist of several words
    CHECK(words(row(result)) == 11);  // "2.0 KiB" and "3.0 MiB" consist of two words
    CHECK(row(result).size() == columns.size());
}

TEST_CASE("summary: contains the quartiles of every column") {
    Result better = result;
    better.best = 0;
    const std::string text = summary(std::vector{result, better, result});

    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
    CHECK(text.find("median") != std::string::npos);
    CHECK(text.find("0.0625") != std::string::npos);
}
