#define DOCTEST_CONFIG_IMPLEMENT
#include "finch/data/dataset.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>

namespace {

using namespace finch;

TEST_CASE("mnist: the original files have the published counts per digit, mean and standard deviation") {
    const auto sets = data::load({.kind = data::Kind::idx, .path = std::getenv("FINCH_MNIST")}, 1);
    std::array<int, 10> counts{};
    for (const std::int32_t label : sets.training.labels) {
        ++counts.at(static_cast<std::size_t>(label));
    }
    double sum = 0;
    double squares = 0;
    for (const std::uint8_t pixel : sets.training.pixels) {
        sum += pixel / 255.0;
        squares += (pixel / 255.0) * (pixel / 255.0);
    }
    const auto pixels = static_cast<double>(sets.training.pixels.size());

    CHECK(sets.training.samples() == 60000);
    CHECK(sets.test.samples() == 10000);
    CHECK(sets.training.height == 28);
    CHECK(sets.training.classes == 10);
    CHECK(counts == std::array<int, 10>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});
    CHECK(sum / pixels == doctest::Approx(0.1307).epsilon(0.001));
    CHECK(std::sqrt(squares / pixels - (sum / pixels) * (sum / pixels)) == doctest::Approx(0.3081).epsilon(0.001));
}

}  // namespace

int main(int argc, char** argv) {
    if (std::getenv("FINCH_MNIST") == nullptr) {
        std::puts("skipped: FINCH_MNIST names no folder with the MNIST files (tools/fetch_mnist.sh DIR fetches them)");
        return 77;
    }
    return doctest::Context(argc, argv).run();
}
