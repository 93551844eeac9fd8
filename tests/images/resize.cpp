#include "support/image_files.hpp"

#include <doctest/doctest.h>

namespace {

using namespace finch;
using testing::patterned;
using Pixels = std::vector<std::uint8_t>;

/// Values of Pillow 9.4: Image.resize() of the same pattern.
TEST_CASE("resize: smaller and larger images equal Pillow's, in grey and in colour") {
    CHECK(images::resize(patterned(7, 9, 1), {3, 4}).pixels ==
          Pixels{85, 135, 120, 176, 129, 100, 155, 150, 132, 120, 115, 91});
    CHECK(images::resize(patterned(4, 5, 3), {2, 7}).pixels ==
          Pixels{116, 123, 185, 96,  135, 131, 113, 149, 91,  176, 153, 114, 139, 143,
                 167, 95,  140, 132, 69,  144, 65,  152, 79,  140, 173, 119, 149, 175,
                 160, 113, 140, 161, 38,  95,  121, 154, 101, 108, 150, 130, 117, 79});
    CHECK(images::resize(patterned(2, 3, 1), {4, 3}).pixels ==
          Pixels{0, 21, 91, 32, 79, 87, 124, 195, 77, 170, 253, 73});
    CHECK(images::resize(patterned(5, 4, 1), {5, 2}).pixels == Pixels{22, 117, 162, 106, 143, 189, 61, 122, 222, 45});
}

TEST_CASE("resize: the same size changes no pixel; an even image stays even") {
    const images::Image image = patterned(5, 6, 3);

    CHECK(images::resize(image, {5, 6}).pixels == image.pixels);
    CHECK(images::resize({.height = 300, .width = 2, .channels = 1, .pixels = Pixels(600, 201)}, {7, 9}).pixels ==
          Pixels(63, 201));
}

}  // namespace
