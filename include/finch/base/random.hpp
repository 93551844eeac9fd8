#pragma once

#include "finch/base/philox.hpp"

#include <cstdint>
#include <vector>

namespace finch {

/// The purpose of a stream of random numbers. Streams with equal ids but different purposes are independent.
enum class Purpose : std::uint32_t {
    breeding = 1,
    exchange = 2,
    initial_weights = 3,
    shuffle = 4,
    split = 6,
    generated_data = 7,
    pretended_duration = 8,
    function_noise = 9,
    test = 10,
    dropout = 11,
    breeding_state = 12,
    function_shift = 13,
    function_rotation = 14,
    start = 15,
    program = 16,
    systems = 17,
    resampling = 18,
    image_sample = 19,
    inheritance = 20,
    mirrored_samples = 21,
};

/// A stream of random numbers that depends only on (seed, purpose, id, index). Two streams with equal seed, purpose, id
/// and index give the same numbers on any machine. Drawing from one stream does not change the numbers of another.
class RandomStream {
public:
    RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t id = 0, std::uint32_t index = 0) noexcept;

    /// Returns 32 random bits.
    std::uint32_t bits() noexcept;
    /// Returns a number uniform in [0, 1), with 53 random bits.
    double uniform() noexcept;
    /// Returns a number uniform in [low, high).
    double uniform(double low, double high) noexcept;
    /// Returns an integer uniform among 0 … count − 1, without bias (Lemire 2019). `count` must be positive.
    std::uint64_t below(std::uint64_t count) noexcept;
    /// Returns a standard normal number (Box and Muller).
    double normal() noexcept;
    /// Returns a uniformly random permutation of 0 … count − 1 (Fisher and Yates).
    std::vector<std::uint32_t> permutation(std::uint32_t count);

private:
    PhiloxKey key_{};
    PhiloxCounter counter_{};
    PhiloxCounter block_{};
    unsigned used_ = 4;
};

}  // namespace finch
