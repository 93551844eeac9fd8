#include "finch/base/random.hpp"

#include "readers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

/// Images of distorted digits: strokes that are jittered, transformed by an affine map and drawn with an antialiased
/// pen, with stray strokes and noise. The code uses only addition, multiplication, division and square root. IEEE 754
/// rounds these operations alike on every machine, so an image has the same bytes everywhere.
namespace finch::data {
namespace {

struct Point {
    double x = 0;  ///< to the right, in [0, 1]
    double y = 0;  ///< downwards, in [0, 1]
};
using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

/// Two handwritten shapes of each digit. The points are control points: rounded() smooths the corners at them.
const std::array<std::array<Glyph, 2>, 10>& glyphs() {
    static const std::array<std::array<Glyph, 2>, 10> all{{
        {{{{{.5, .05}, {.2, .1}, {.15, .5}, {.2, .9}, {.5, .97}, {.8, .9}, {.85, .5}, {.8, .1}, {.5, .05}}},
          {{{.6, .05}, {.3, .15}, {.25, .55}, {.3, .95}, {.6, .95}, {.75, .7}, {.75, .3}, {.7, .05}, {.45, .08}}}}},
        {{{{{.5, .03}, {.5, .97}}}, {{{.3, .3}, {.55, .05}, {.55, .95}}, {{.3, .95}, {.8, .95}}}}},
        {{{{{.2, .3}, {.25, .05}, {.75, .0}, {.85, .35}, {.5, .65}, {.15, .95}, {.5, .93}, {.85, .95}}},
          {{{.2, .25}, {.4, .0}, {.8, .1}, {.7, .5}, {.3, .95}, {.15, .8}, {.35, .75}, {.6, .9}, {.85, .9}}}}},
        {{{{{.2, .15}, {.5, .0}, {.85, .15}, {.75, .45}, {.45, .5}, {.85, .55}, {.9, .85}, {.5, 1.}, {.15, .85}}},
          {{{.2, .05}, {.8, .05}, {.45, .42}, {.85, .5}, {.85, .9}, {.5, 1.}, {.15, .85}}}}},
        {{{{{.65, .97}, {.65, .03}, {.4, .35}, {.12, .65}, {.5, .65}, {.9, .65}}},
          {{{.25, .05}, {.2, .5}, {.5, .52}, {.8, .5}}, {{.75, .1}, {.7, .97}}}}},
        {{{{{.8, .05}, {.25, .05}, {.22, .45}, {.6, .38}, {.9, .6}, {.75, .95}, {.4, 1.}, {.15, .85}}},
          {{{.3, .05}, {.25, .5}, {.7, .4}, {.85, .75}, {.6, 1.}, {.2, .92}}, {{.3, .07}, {.85, .05}}}}},
        {{{{{.7, .03}, {.35, .2}, {.15, .7}, {.35, 1.}, {.75, .95}, {.85, .65}, {.55, .5}, {.2, .65}}},
          {{{.4, .03}, {.2, .5}, {.25, 1.}, {.7, 1.}, {.8, .7}, {.5, .55}, {.25, .8}}}}},
        {{{{{.15, .07}, {.5, .06}, {.85, .05}, {.6, .45}, {.4, .97}}},
          {{{.15, .2}, {.2, .05}, {.85, .07}, {.65, .5}, {.5, .97}}, {{.35, .5}, {.8, .5}}}}},
        {{{{{.5, .5},
            {.15, .35},
            {.3, .0},
            {.7, .0},
            {.85, .3},
            {.5, .5},
            {.12, .7},
            {.3, 1.},
            {.7, 1.},
            {.88, .7},
            {.5, .5}}},
          {{{.8, .15},
            {.5, .0},
            {.2, .2},
            {.45, .45},
            {.8, .7},
            {.6, 1.},
            {.25, .95},
            {.25, .65},
            {.6, .42},
            {.8, .15}}}}},
        {{{{{.8, .3}, {.6, .0}, {.2, .1}, {.2, .45}, {.6, .5}, {.8, .3}, {.8, .6}, {.7, .97}}},
          {{{.75, .15}, {.4, .0}, {.15, .3}, {.45, .5}, {.8, .2}, {.85, .7}, {.6, 1.}, {.25, .95}}}}},
    }};
    return all;
}

/// An affine map of the plane.
struct Affine {
    double xx, xy, yx, yy, x, y;
    [[nodiscard]] Point operator()(Point p) const noexcept {
        return {xx * p.x + xy * p.y + x, yx * p.x + yy * p.y + y};
    }
};

/// Returns a random map from the glyph's square to an image of `size` pixels: a rotation by up to 20 degrees, shear,
/// stretching and a shift.
Affine random_affine(RandomStream& random, double size) {
    const double half = random.uniform(-0.176, 0.176);  // tangent of half the angle: no sine is needed
    const double cosine = (1 - half * half) / (1 + half * half);
    const double sine = 2 * half / (1 + half * half);
    const double width = random.uniform(0.4, 0.68) * size;
    const double height = random.uniform(0.55, 0.78) * size;
    const double shear = random.uniform(-0.3, 0.3) * height;
    Affine map{cosine * width, cosine * shear - sine * height, sine * width, sine * shear + cosine * height, 0, 0};
    const Point middle = map({0.5, 0.5});
    map.x = size * (0.5 + random.uniform(-0.09, 0.09)) - middle.x;
    map.y = size * (0.5 + random.uniform(-0.09, 0.09)) - middle.y;
    return map;
}

/// Cuts the corners of a stroke (Chaikin, An Algorithm for High-Speed Curve Generation, 1974) and keeps its ends.
Stroke rounded(const Stroke& stroke) {
    Stroke result{stroke.front()};
    for (std::size_t i = 0; i + 1 < stroke.size(); ++i) {
        const Point a = stroke[i];
        const Point b = stroke[i + 1];
        result.push_back({0.75 * a.x + 0.25 * b.x, 0.75 * a.y + 0.25 * b.y});
        result.push_back({0.25 * a.x + 0.75 * b.x, 0.25 * a.y + 0.75 * b.y});
    }
    result.push_back(stroke.back());
    return result;
}

double distance(Point p, Point a, Point b) noexcept {
    const double dx = b.x - a.x;
    const double dy = b.y - a.y;
    const double length = dx * dx + dy * dy;
    const double along = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0.0;
    const double x = p.x - (a.x + along * dx);
    const double y = p.y - (a.y + along * dy);
    return std::sqrt(x * x + y * y);
}

/// An image of `size` × `size` pixels with ink values in [0, 1].
class Paper {
public:
    explicit Paper(std::int64_t size) : size_(size), ink_(static_cast<std::size_t>(size * size)) {}

    /// Draws a stroke with a pen of diameter `width` pixels. The edge of the pen fades over one pixel for antialiasing.
    void draw(const Stroke& stroke, double width, double strength) {
        for (std::size_t i = 0; i + 1 < stroke.size(); ++i) {
            draw_line(stroke[i], stroke[i + 1], width, strength);
        }
    }
    [[nodiscard]] std::span<const double> ink() const noexcept { return ink_; }

private:
    [[nodiscard]] std::int64_t pixel(double at) const noexcept {
        return static_cast<std::int64_t>(std::clamp(at, 0.0, static_cast<double>(size_)));
    }
    void draw_line(Point a, Point b, double width, double strength) {
        const double reach = width / 2 + 1;
        const std::int64_t bottom = std::min(pixel(std::max(a.y, b.y) + reach) + 1, size_);
        const std::int64_t right = std::min(pixel(std::max(a.x, b.x) + reach) + 1, size_);
        for (std::int64_t row = pixel(std::min(a.y, b.y) - reach); row < bottom; ++row) {
            for (std::int64_t column = pixel(std::min(a.x, b.x) - reach); column < right; ++column) {
                const Point centre{static_cast<double>(column) + 0.5, static_cast<double>(row) + 0.5};
                const double cover = std::clamp(width / 2 + 0.5 - distance(centre, a, b), 0.0, 1.0);
                double& ink = ink_[static_cast<std::size_t>(row * size_ + column)];
                ink = std::max(ink, cover * strength);
            }
        }
    }

    std::int64_t size_;
    std::vector<double> ink_;  // (size, size)
};

/// Draws a short line at a random place, like a part of a neighbouring digit or a smudge.
void draw_stray(Paper& paper, RandomStream& random, double size, double width) {
    const Point from{random.uniform(0, size), random.uniform(0, size)};
    const Point to{from.x + random.uniform(-0.25, 0.25) * size, from.y + random.uniform(-0.25, 0.25) * size};
    paper.draw({from, to}, 0.7 * width, random.uniform(0.3, 0.9));
}

/// Appends image `index` of set `which` (0: training, 1: test). The image depends only on (seed, set, index).
void append_digit(Dataset& set, std::uint64_t seed, std::uint32_t which, std::int64_t index) {
    RandomStream random(seed, Purpose::generated_data, static_cast<std::uint64_t>(index), which);
    const auto size = static_cast<double>(set.height);
    const auto digit = random.below(10);
    const Glyph& glyph = glyphs()[digit][random.below(2)];
    const Affine map = random_affine(random, size);
    const double width = std::max(random.uniform(0.05, 0.12) * size, 1.0);
    const double strength = random.uniform(0.6, 1.0);
    Paper paper(set.height);
    for (const Stroke& stroke : glyph) {
        Stroke bent;
        for (const Point point : stroke) {
            bent.push_back(map({point.x + random.uniform(-0.07, 0.07), point.y + random.uniform(-0.07, 0.07)}));
        }
        paper.draw(rounded(rounded(bent)), width, strength);
    }
    if (random.uniform() < 0.5) {
        draw_stray(paper, random, size, width);
    }
    const double noise = random.uniform(0.02, 0.2);
    for (const double ink : paper.ink()) {
        const double value = ink + noise * (random.uniform() + random.uniform() - 1);
        set.pixels.own().push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0, 1.0) * 255 + 0.5));
    }
    set.labels.own().push_back(static_cast<std::int32_t>(digit));
}

Dataset draw_set(const Options& options, std::uint64_t seed, std::uint32_t which, std::int64_t samples) {
    constexpr std::int64_t usual_size = 28;
    const std::int64_t size = options.size.empty() ? usual_size : options.size.front();
    Dataset set{.height = size, .width = size, .channels = 1};
    set.pixels.own().reserve(static_cast<std::size_t>(samples * set.pixels_per_image()));
    for (std::int64_t index = 0; index < samples; ++index) {
        append_digit(set, seed, which, index);
    }
    return set;
}

}  // namespace

Sets generate_sets(const Options& options, std::uint64_t seed) {
    return {draw_set(options, seed, 0, options.generated_samples), generate_test(options, seed)};
}

Dataset generate_test(const Options& options, std::uint64_t seed) {
    return draw_set(options, seed, 1, std::max<std::int64_t>(options.generated_samples / 6, 1));
}

}  // namespace finch::data
