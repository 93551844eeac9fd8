#include "finch/base/error.hpp"
#include "finch/search/initial_design.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <set>

using namespace finch;
using namespace finch::search;

namespace {

constexpr std::uint64_t seed = 5;

/// Returns the binary digits of a coordinate. The coordinate is the center of a cell of width 2^-32.
std::uint32_t bits_of(double x) {
    return static_cast<std::uint32_t>(std::floor(std::ldexp(x, 32)));
}

std::vector<std::vector<double>> points(Start start, std::uint32_t count, std::size_t genes) {
    std::vector<std::vector<double>> all;
    for (std::uint32_t k = 0; k < count; ++k) {
        all.push_back(start_point(start, seed, k, count, genes));
    }
    return all;
}

/// Returns whether each of `count` equal intervals of the gene contains exactly one point.
bool is_stratified(const std::vector<std::vector<double>>& all, std::size_t gene) {
    std::set<int> shares;
    for (const auto& point : all) {
        shares.insert(static_cast<int>(point[gene] * static_cast<double>(all.size())));
    }
    return shares.size() == all.size() && *shares.begin() == 0 && *shares.rbegin() == std::ssize(all) - 1;
}

}  // namespace

TEST_CASE("sobol: without the random shift, the first points equal Joe and Kuo's sequence") {
    // The points as Joe and Kuo's program prints them, in Gray code order.
    const std::vector<std::vector<double>> published{
        {0, 0, 0, 0, 0},
        {0.5, 0.5, 0.5, 0.5, 0.5},
        {0.25, 0.75, 0.75, 0.75, 0.25},
        {0.75, 0.25, 0.25, 0.25, 0.75},
        {0.125, 0.625, 0.375, 0.125, 0.125},
        {0.625, 0.125, 0.875, 0.625, 0.625},
        {0.375, 0.375, 0.625, 0.875, 0.375},
        {0.875, 0.875, 0.125, 0.375, 0.875},
    };
    const auto shifted = points(Start::sobol, 8, 5);

    for (std::size_t k = 0; k < 8; ++k) {
        for (std::size_t gene = 0; gene < 5; ++gene) {
            const auto expected = static_cast<std::uint32_t>(std::ldexp(published[k][gene], 32));
            CHECK((bits_of(shifted[k][gene]) ^ bits_of(shifted[0][gene])) == expected);
        }
    }
}

TEST_CASE("sobol: 256 consecutive points are stratified in every gene, and in the square of the first two genes") {
    const auto all = points(Start::sobol, 512, most_sobol_genes);

    for (std::size_t first : {0U, 256U}) {
        const std::vector<std::vector<double>> part(all.begin() + static_cast<std::ptrdiff_t>(first),
                                                    all.begin() + static_cast<std::ptrdiff_t>(first + 256));
        for (std::size_t gene = 0; gene < most_sobol_genes; ++gene) {
            CHECK(is_stratified(part, gene));
        }
        // The first two dimensions are a (0, 8, 2)-net: one point in each of 16 x 16 squares.
        std::set<std::pair<int, int>> squares;
        for (const auto& point : part) {
            squares.emplace(static_cast<int>(point[0] * 16), static_cast<int>(point[1] * 16));
        }
        CHECK(squares.size() == 256);
    }
}

TEST_CASE("sobol: no two dimensions have the same points") {
    const auto all = points(Start::sobol, 64, most_sobol_genes);
    for (std::size_t a = 0; a < most_sobol_genes; ++a) {
        for (std::size_t b = a + 1; b < most_sobol_genes; ++b) {
            bool same = true;
            for (const auto& point : all) {
                same = same && (bits_of(point[a]) ^ bits_of(all[0][a])) == (bits_of(point[b]) ^ bits_of(all[0][b]));
            }
            CHECK_FALSE(same);
        }
    }
}

TEST_CASE("latin: each of n intervals of every gene has exactly one of n points, in a different order per gene") {
    for (const std::uint32_t count : {1U, 7U, 16U, 30U}) {
        const auto all = points(Start::latin, count, 40);
        for (std::size_t gene = 0; gene < 40; ++gene) {
            CHECK(is_stratified(all, gene));
        }
    }
    const auto all = points(Start::latin, 30, 2);
    CHECK(static_cast<int>(all[0][0] * 30) != static_cast<int>(all[0][1] * 30));
}

TEST_CASE("start_point: a point depends only on the seed and its number") {
    for (const Start start : {Start::sobol, Start::latin}) {
        CHECK(start_point(start, 1, 3, 16, 4) == start_point(start, 1, 3, 16, 4));
        CHECK(start_point(start, 1, 3, 16, 4) != start_point(start, 2, 3, 16, 4));
        CHECK(start_point(start, 1, 3, 16, 4) != start_point(start, 1, 4, 16, 4));
    }
}

TEST_CASE("start_point: throws Error for points that do not exist") {
    CHECK_THROWS_AS((void)start_point(Start::random, 1, 0, 1, 1), Error);
    CHECK_THROWS_AS((void)start_point(Start::latin, 1, 4, 4, 1), Error);
    CHECK_THROWS_AS((void)start_point(Start::sobol, 1, 0, 4, most_sobol_genes + 1), Error);
    CHECK(start_point(Start::sobol, 1, 0, 4, most_sobol_genes).size() == most_sobol_genes);
}
