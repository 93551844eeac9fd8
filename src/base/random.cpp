#include "finch/base/random.hpp"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace finch {

__extension__ using Wide = unsigned __int128;

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
        counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
                   static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
        key[0] += 0x9E3779B9;  // golden ratio
        key[1] += 0xBB67AE85;  // √3 − 1
    }
    return counter;
}

namespace {

std::array<std::uint32_t, 2> halves(std::uint64_t value) {
    return {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
}

}  // namespace

// The seed and the purpose make the key, so that the whole counter is left for (id, index, position).
RandomStream::RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t id, std::uint32_t index) noexcept {
    const auto [low, high] = halves(seed);
    const auto mixed = philox({low, high, static_cast<std::uint32_t>(purpose), index}, {0, 0});
    key_ = {mixed[0], mixed[1]};
    const auto [id_low, id_high] = halves(id);
    counter_ = {0, mixed[2], id_low, id_high};
}

std::uint32_t RandomStream::bits() noexcept {
    if (used_ == block_.size()) {
        block_ = philox(counter_, key_);
        ++counter_[0];
        used_ = 0;
    }
    return block_[used_++];
}

double RandomStream::uniform() noexcept {
    const std::uint64_t high = bits();
    const std::uint64_t low = bits();
    return static_cast<double>(((high << 32) | low) >> 11) * 0x1.0p-53;
}

double RandomStream::uniform(double low, double high) noexcept {
    return low + (high - low) * uniform();
}

std::uint64_t RandomStream::below(std::uint64_t count) noexcept {
    const auto draw = [this] { return (std::uint64_t{bits()} << 32) | bits(); };
    auto product = static_cast<Wide>(draw()) * count;
    if (auto low = static_cast<std::uint64_t>(product); low < count) {
        const std::uint64_t threshold = (0 - count) % count;
        while (low < threshold) {
            product = static_cast<Wide>(draw()) * count;
            low = static_cast<std::uint64_t>(product);
        }
    }
    return static_cast<std::uint64_t>(product >> 64);
}

double RandomStream::normal() noexcept {
    const double radius = std::sqrt(-2 * std::log1p(-uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
}

std::vector<std::uint32_t> RandomStream::permutation(std::uint32_t count) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    for (std::uint32_t left = count; left > 1; --left) {
        std::swap(order[left - 1], order[below(left)]);
    }
    return order;
}

}  // namespace finch
