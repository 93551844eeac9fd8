#include "finch/base/loss_order.hpp"
#include "finch/base/random.hpp"
#include "finch/run/results.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <span>
#include <utility>

namespace finch::run {
namespace {

/// An image with its guess.
struct Guess {
    std::size_t row = 0;
    float score = 0;
};

Guess guess_of(const Results& results, std::size_t row) {
    const auto classes = static_cast<std::size_t>(results.classification->classes);
    const auto guess = static_cast<std::size_t>(results.measured.predictions[row]);
    return {row, results.measured.scores[row * classes + guess]};
}

std::vector<Guess> surest_mistakes(const Results& results, std::size_t most) {
    std::vector<Guess> found;
    for (std::size_t row = 0; row < results.samples.size(); ++row) {
        if (results.measured.predictions[row] != results.labels[row]) {
            found.push_back(guess_of(results, row));
        }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Guess& a, const Guess& b) { return is_better_loss(-a.score, -b.score); });
    found.resize(std::min(found.size(), most));
    return found;
}

/// Returns `most` rows drawn without repetition, or all rows if there are fewer, in ascending order.
std::vector<Guess> drawn(const Results& results, std::size_t most, std::uint64_t seed) {
    RandomStream random(seed, Purpose::image_sample);
    std::set<std::size_t> rows;
    while (rows.size() < std::min(most, results.samples.size())) {
        rows.insert(random.below(results.samples.size()));
    }
    std::vector<Guess> found;
    for (const std::size_t row : rows) {
        found.push_back(guess_of(results, row));
    }
    return found;
}

/// Returns the pixels of `samples` as an array (N, H, W, C).
NamedArray images_of(const data::Dataset& set, std::span<const std::int64_t> samples, std::string name) {
    std::vector<std::uint8_t> bytes;
    data::visit_pixels(set, samples, [&](std::span<const std::uint8_t> pixels) {
        bytes.insert(bytes.end(), pixels.begin(), pixels.end());
    });
    NamedArray images{
        std::move(name), {static_cast<std::int64_t>(samples.size()), set.height, set.width, set.channels}, bytes};
    if (set.float_pixels) {
        std::vector<float> floats(bytes.size() / sizeof(float));
        std::memcpy(floats.data(), bytes.data(), bytes.size());
        images.values = std::move(floats);
    }
    return images;
}

std::size_t at_most(std::int64_t images, const data::Dataset& set) {
    return static_cast<std::size_t>(std::clamp(most_image_bytes / set.bytes_per_image(), std::int64_t{1}, images));
}

bool has_guesses(const Results& results) {
    return results.classification && !results.measured.scores.empty();
}

/// Adds the arrays of `guesses` below the name `below`.
void add_guesses(NamedArrays& arrays, const std::string& below, std::span<const Guess> guesses, const Results& results,
                 const data::Dataset& set) {
    std::vector<std::int64_t> index;
    std::vector<std::int64_t> truth;
    std::vector<std::int64_t> guess;
    std::vector<float> score;
    for (const Guess& one : guesses) {
        index.push_back(results.samples[one.row]);
        truth.push_back(results.labels[one.row]);
        guess.push_back(results.measured.predictions[one.row]);
        score.push_back(one.score);
    }
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(guesses.size())};
    arrays.push_back(images_of(set, index, below + "images"));
    arrays.push_back({below + "index", shape, std::move(index)});
    arrays.push_back({below + "truth", shape, std::move(truth)});
    arrays.push_back({below + "guess", shape, std::move(guess)});
    arrays.push_back({below + "score", shape, std::move(score)});
}

}  // namespace

void set_mistakes(NamedArrays& arrays, const std::string& name, const Results& results, const data::Dataset& set) {
    if (has_guesses(results)) {
        add_guesses(arrays, name + "/mistakes/", surest_mistakes(results, at_most(most_mistakes, set)), results, set);
    }
}

void set_image_sample(NamedArrays& arrays, const std::string& name, const Results& results, const data::Dataset& set,
                      std::uint64_t seed) {
    if (has_guesses(results)) {
        add_guesses(arrays, name + "/sample/", drawn(results, at_most(most_drawn, set), seed), results, set);
    }
}

}  // namespace finch::run
