#include "support/image_files.hpp"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>

namespace {

using namespace finch;
using namespace finch::testing;
using Pixels = std::vector<std::uint8_t>;

std::string problem_of(const FileBytes& file, const images::Options& options = {}) {
    try {
        static_cast<void>(images::read(file, options));
    } catch (const images::ImageError& error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

int largest_difference(const Pixels& a, const Pixels& b) {
    REQUIRE(a.size() == b.size());
    int largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::abs(a[i] - b[i]));
    }
    return largest;
}

/// Returns an image of `height` rows whose left half is dark and right half bright, without fine detail.
images::Image halves(std::int64_t height, std::int64_t width, Pixels dark, const Pixels& bright) {
    images::Image image{
        .height = height, .width = width, .channels = static_cast<std::int64_t>(dark.size()), .pixels = {}};
    for (std::int64_t at = 0; at < height * width; ++at) {
        const Pixels& colour = at % width < width / 2 ? dark : bright;
        image.pixels.insert(image.pixels.end(), colour.begin(), colour.end());
    }
    return image;
}

TEST_CASE("decode: a PNG keeps its pixels; grey and RGB become what Options::grey says") {
    const images::Image rgb = patterned(5, 4, 3);
    const images::Image grey = patterned(5, 4, 1);

    CHECK(images::read(png_of(rgb), {}).pixels == rgb.pixels);
    CHECK(images::read(png_of(grey), {.grey = true}).pixels == grey.pixels);
    const images::Image coloured = images::read(png_of(grey), {});
    CHECK(coloured.channels == 3);
    for (std::size_t i = 0; i < coloured.pixels.size(); ++i) {
        CHECK(coloured.pixels[i] == grey.pixels[i / 3]);
    }
    const images::Image luma = images::read(
        png_of({.height = 1, .width = 3, .channels = 3, .pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255}}), {.grey = true});
    CHECK(luma.pixels == Pixels{76, 150, 29});  // 0.299, 0.587, 0.114 of 255, as Pillow rounds
    CHECK(images::read(png_of(rgb), {.size = images::Size{2, 3}}).pixels == images::resize(rgb, {2, 3}).pixels);
}

TEST_CASE("decode: opaque pixels lose their opacity; transparent ones need a background") {
    images::Image image = patterned(2, 2, 4);
    for (std::size_t i = 3; i < image.pixels.size(); i += 4) {
        image.pixels[i] = 255;
    }
    CHECK(images::read(png_of(image), {}).channels == 3);

    image.pixels = {100, 0, 50, 255, 100, 0, 50, 0, 100, 0, 50, 51, 0, 0, 0, 255};
    CHECK(contains(problem_of(png_of(image)), "has transparent pixels; write data.background"));
    CHECK(images::read(png_of(image), {.background = std::array<std::uint8_t, 3>{200, 10, 50}}).pixels ==
          Pixels{100, 0, 50, 200, 10, 50, 180, 8, 50, 0, 0, 0});  // 51 of 255 is a fifth
    const images::Image grey{.height = 1, .width = 1, .channels = 2, .pixels = {9, 0}};
    CHECK(images::read(png_of(grey), {.grey = true, .background = std::array<std::uint8_t, 3>{7, 7, 7}}).pixels ==
          Pixels{7});
}

TEST_CASE("decode: the orientation in EXIF, or else in XMP, turns PNG and JPEG; damaged EXIF data are noted") {
    const images::Image image{.height = 2, .width = 3, .channels = 1, .pixels = {0, 1, 2, 3, 4, 5}};
    const std::array<Pixels, 9> upright{Pixels{},           {0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3},
                                        {5, 4, 3, 2, 1, 0}, {3, 4, 5, 0, 1, 2}, {0, 3, 1, 4, 2, 5},
                                        {3, 0, 4, 1, 5, 2}, {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
    for (int orientation = 1; orientation <= 8; ++orientation) {
        for (const bool is_little : {false, true}) {
            const images::Image read =
                images::decode(with_chunk(png_of(image), "eXIf", exif_of(orientation, is_little)));
            CHECK(read.pixels == upright[static_cast<std::size_t>(orientation)]);
            CHECK(read.height == (orientation < 5 ? 2 : 3));
            CHECK(read.remark == (orientation > 1 ? "turned as EXIF says" : ""));
        }
    }
    std::string text("Raw profile type exif\0", 22);
    text += "\nexif\n 32\n";
    for (const char c : std::string("Exif\0\0", 6) + exif_of(3)) {
        constexpr const char* digits = "0123456789abcdef";
        text += std::string{digits[static_cast<std::uint8_t>(c) >> 4], digits[c & 15]} + "\n";
    }
    CHECK(images::decode(with_chunk(png_of(image), "tEXt", text)).pixels == upright[3]);
    const images::Image turned = images::decode(jpeg_of(halves(8, 16, {10}, {200}), JCS_GRAYSCALE, exif_of(6)));
    CHECK(turned.height == 16);
    CHECK(turned.pixels.front() < 20);
    CHECK(turned.pixels.back() > 190);
    for (const FileBytes& damaged : {with_chunk(png_of(image), "tEXt", text.substr(0, 40)),
                                     with_chunk(png_of(image), "eXIf", exif_of(6).substr(0, 12))}) {
        CHECK(images::decode(damaged).pixels == image.pixels);
        CHECK(images::decode(damaged).remark == "damaged EXIF data, not turned");
    }
    const std::string doubled = std::string("Exif\0\0", 6) + exif_of(6);
    CHECK(images::decode(jpeg_of(halves(8, 16, {10}, {200}), JCS_GRAYSCALE, doubled)).pixels == turned.pixels);
    const std::string key("XML:com.adobe.xmp\0\0\0\0\0", 22);
    for (const std::string xmp : {"<x tiff:Orientation=\"3\"/>", "<tiff:Orientation>3</tiff:Orientation>"}) {
        const FileBytes file = with_chunk(png_of(image), "iTXt", key + xmp);
        CHECK(images::decode(file).pixels == upright[3]);
        CHECK(images::decode(file).remark == "turned as XMP says");
        CHECK(images::decode(with_chunk(file, "eXIf", exif_of(2))).pixels == upright[2]);
        const std::string marker = std::string("http://ns.adobe.com/xap/1.0/\0", 29) + xmp;
        CHECK(images::decode(jpeg_of(halves(8, 16, {10}, {200}), JCS_GRAYSCALE, "", marker)).pixels.front() > 190);
    }
}

TEST_CASE("decode: a JPEG has the colours that were written, in RGB, grey and CMYK") {
    const images::Image colours = halves(16, 32, {200, 30, 60}, {10, 120, 250});
    CHECK(largest_difference(images::read(jpeg_of(colours, JCS_RGB), {}).pixels, colours.pixels) < 8);
    const images::Image grey = halves(8, 16, {20}, {240});
    CHECK(largest_difference(images::read(jpeg_of(grey, JCS_GRAYSCALE), {.grey = true}).pixels, grey.pixels) < 4);
    // Inverted CMYK: 255 is no ink. Red is 255 · 0.5 with half of the light.
    const images::Image inks = halves(8, 16, {255, 0, 0, 128}, {255, 255, 255, 255});
    const images::Image expected = halves(8, 16, {128, 0, 0}, {255, 255, 255});
    CHECK(largest_difference(images::read(jpeg_of(inks, JCS_CMYK), {}).pixels, expected.pixels) < 4);
}

TEST_CASE("decode: broken files, animations, 16 bits and other formats are refused") {
    const FileBytes png = png_of(patterned(20, 20, 3));
    const FileBytes jpeg = jpeg_of(patterned(20, 20, 3), JCS_RGB);
    for (const FileBytes& file : {png, jpeg}) {
        for (const std::size_t size : {file.size() / 2, file.size() - 20, std::size_t{30}}) {
            CHECK(contains(problem_of({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)}),
                           "cannot be read as "));
        }
    }
    CHECK(contains(problem_of({jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(jpeg.size() / 2)}),
                   "cannot be read as JPEG (the file is cut off)"));
    FileBytes changed = png;
    changed[changed.size() / 2] ^= std::byte{1};
    CHECK(contains(problem_of(changed), "cannot be read as PNG ("));
    CHECK(contains(problem_of(png_of(patterned(4, 4, 3), true)), "has 16 bits in each channel"));
    CHECK(contains(problem_of(with_chunk(png, "acTL", std::string("\0\0\0\2\0\0\0\0", 8))), "holds 2 frames"));
    const std::string gif = "GIF89a........";
    const auto bytes = std::as_bytes(std::span(gif));
    CHECK(contains(problem_of({bytes.begin(), bytes.end()}), "is GIF; expected PNG or JPEG (tools/images_to_hdf5.py"));
    CHECK(contains(problem_of({}), "is neither PNG nor JPEG"));
    FileBytes huge = png;
    huge[16] = std::byte{0x7F};  // the width, with a wrong checksum
    CHECK(problem_of(huge) != "");
}

}  // namespace
