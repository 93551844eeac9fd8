#include "finch/base/random.hpp"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace finch {

__extension__ using Wide = unsigned __int128;

namespace {

std::uint32_t low(std::uint64_t value) {
    return static_cast<std::uint32_t>(value);
}
std::uint32_t high(std::uint64_t value) {
    return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace

// The key of a RandomStream is a hash of seed, purpose and index. The counter contains the position in the stream, one
// more word of the hash, and the id.
RandomStream::RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t id, std::uint32_t index) noexcept {
    const PhiloxCounter mixed =
        philox({{low(seed), high(seed), static_cast<std::uint32_t>(purpose), index}}, PhiloxKey{});
    key_ = {{mixed.word[0], mixed.word[1]}};
    counter_ = {{0, mixed.word[2], low(id), high(id)}};
}

std::uint32_t RandomStream::bits() noexcept {
    if (used_ == 4) {
        block_ = philox(counter_, key_);
        ++counter_.word[0];
        used_ = 0;
    }
    return block_.word[used_++];
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
