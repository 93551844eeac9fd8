#include "finch/base/loss_order.hpp"
#include "finch/run/results.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace finch::run {
namespace {

constexpr std::int64_t most_images = 64;
constexpr std::int64_t most_bytes = std::int64_t{8} << 20;

struct Mistake {
    std::size_t row = 0;
    float score = 0;  ///< of the wrong guess
};

std::vector<Mistake> surest(const Results& results, std::int64_t most) {
    const auto classes = static_cast<std::size_t>(results.classification->classes);
    std::vector<Mistake> found;
    for (std::size_t row = 0; row < results.samples.size(); ++row) {
        const std::int32_t guess = results.measured.predictions[row];
        if (guess != results.labels[row]) {
            found.push_back({row, results.measured.scores[row * classes + static_cast<std::size_t>(guess)]});
        }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Mistake& a, const Mistake& b) { return is_better_loss(-a.score, -b.score); });
    found.resize(std::min(found.size(), static_cast<std::size_t>(most)));
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

}  // namespace

void set_mistakes(NamedArrays& arrays, const std::string& name, const Results& results, const data::Dataset& set) {
    if (!results.classification || results.measured.scores.empty()) {
        return;
    }
    const std::int64_t most = std::clamp(most_bytes / set.bytes_per_image(), std::int64_t{1}, most_images);
    const std::vector<Mistake> mistakes = surest(results, most);
    std::vector<std::int64_t> index;
    std::vector<std::int64_t> truth;
    std::vector<std::int64_t> guess;
    std::vector<float> score;
    for (const Mistake& mistake : mistakes) {
        index.push_back(results.samples[mistake.row]);
        truth.push_back(results.labels[mistake.row]);
        guess.push_back(results.measured.predictions[mistake.row]);
        score.push_back(mistake.score);
    }
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(mistakes.size())};
    const std::string below = name + "/mistakes/";
    arrays.push_back(images_of(set, index, below + "images"));
    arrays.push_back({below + "index", shape, std::move(index)});
    arrays.push_back({below + "truth", shape, std::move(truth)});
    arrays.push_back({below + "guess", shape, std::move(guess)});
    arrays.push_back({below + "score", shape, std::move(score)});
}

}  // namespace finch::run
