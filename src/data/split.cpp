#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"
#include "finch/data/dataset.hpp"

#include <algorithm>
#include <iterator>

namespace finch::data {

Split split(const Options& options, const Dataset& set, std::uint64_t seed) {
    const std::int64_t samples = set.samples();
    const bool is_sampled = set.validation.empty();
    const std::int64_t validation =
        is_sampled ? options.validation_samples : static_cast<std::int64_t>(set.validation.size());
    const std::int64_t left = samples - validation;
    if (left < 1) {
        throw ConfigError(fmt::format("{}: {} of {} training samples leave none to train with; at most {}",
                                      is_sampled ? "data.validation_samples" : "data.validation", validation, samples,
                                      samples - 1));
    }
    const std::int64_t training = options.training_samples.value_or(left);
    if (training < 1 || training > left) {
        throw ConfigError(
            fmt::format("data.training_samples: {} samples asked for, but {} less {} for validation leave "
                        "{}",
                        training, samples, validation, left));
    }
    const auto order = RandomStream(seed, Purpose::split).permutation(static_cast<std::uint32_t>(samples));
    Split result;
    if (is_sampled) {
        result.validation.assign(order.begin(), order.begin() + validation);
        result.training.assign(order.begin() + validation, order.begin() + validation + training);
        std::sort(result.validation.begin(), result.validation.end());
    } else {
        result.validation.assign(set.validation.begin(), set.validation.end());
        std::copy_if(order.begin(), order.end(), std::back_inserter(result.training), [&result](std::int64_t sample) {
            return !std::binary_search(result.validation.begin(), result.validation.end(), sample);
        });
        result.training.resize(static_cast<std::size_t>(training));
    }
    std::sort(result.training.begin(), result.training.end());
    return result;
}

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t individual, std::int64_t epoch,
                                       std::int64_t count) {
    return RandomStream(seed, Purpose::shuffle, individual, static_cast<std::uint32_t>(epoch))
        .permutation(static_cast<std::uint32_t>(count));
}

Share share_of(std::int64_t begin, std::int64_t end, int rank, int ranks) {
    const std::int64_t share = (end - begin + ranks - 1) / ranks;
    const std::int64_t first = std::min(begin + share * rank, end);
    return {first, std::min(first + share, end)};
}

}  // namespace finch::data
