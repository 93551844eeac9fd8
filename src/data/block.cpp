#include "finch/base/error.hpp"
#include "finch/data/dataset.hpp"

#include <array>
#include <cstring>

namespace finch::data {
namespace {

/// What stands at the beginning of a block: height, width, channels, classes, samples. Labels follow, then pixels.
using Head = std::array<std::int64_t, 5>;

}  // namespace

std::size_t block_bytes(const Dataset& set) {
    return sizeof(Head) + set.labels.size() * sizeof(std::int32_t) + set.pixels.size();
}

void write_block(const Dataset& set, std::span<std::byte> block) {
    if (block.size() != block_bytes(set)) {
        throw Error("a data set does not fit the block of memory that it is written to");
    }
    const Head head{set.height, set.width, set.channels, set.classes, set.samples()};
    const std::size_t labels = set.labels.size() * sizeof(std::int32_t);
    std::memcpy(block.data(), head.data(), sizeof head);
    std::memcpy(block.data() + sizeof head, set.labels.data(), labels);
    std::memcpy(block.data() + sizeof head + labels, set.pixels.data(), set.pixels.size());
}

Dataset view_block(std::span<const std::byte> block) {
    Head head{};
    std::memcpy(head.data(), block.data(), sizeof head);
    Dataset set{.height = head[0], .width = head[1], .channels = head[2], .classes = head[3]};
    const auto samples = static_cast<std::size_t>(head[4]);
    const std::byte* labels = block.data() + sizeof head;
    const std::byte* pixels = labels + samples * sizeof(std::int32_t);
    set.labels = Elements<std::int32_t>(std::span(reinterpret_cast<const std::int32_t*>(labels), samples));
    set.pixels = Elements<std::uint8_t>(std::span(reinterpret_cast<const std::uint8_t*>(pixels),
                                                  samples * static_cast<std::size_t>(set.pixels_per_image())));
    return set;
}

}  // namespace finch::data
