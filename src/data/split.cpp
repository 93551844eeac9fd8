#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"
#include "finch/data/dataset.hpp"

#include <algorithm>

namespace finch::data {

Split split(const Options& options, std::int64_t samples, std::uint64_t seed) {
    const std::int64_t validation = options.validation_samples;
    const std::int64_t left = samples - validation;
    if (left < 1) {
        throw ConfigError(
            fmt::format("data.validation_samples: {} of {} training samples leave none to train with; at "
                        "most {}",
                        validation, samples, samples - 1));
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
    result.validation.assign(order.begin(), order.begin() + validation);
    result.training.assign(order.begin() + validation, order.begin() + validation + training);
    std::sort(result.validation.begin(), result.validation.end());
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
