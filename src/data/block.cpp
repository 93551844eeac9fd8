#include "finch/base/error.hpp"
#include "finch/base/message.hpp"
#include "finch/data/dataset.hpp"

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace finch::data {
namespace {

/// The header of a block: height, width, channels, classes, target_size, float_pixels, and the size of each list and of
/// two messages. The lists follow the header, then the messages: the places of streamed pixels, and the class names.
using Head = std::array<std::int64_t, 15>;
constexpr std::size_t sizes_at = 6;

/// Calls visit(list) for each list of elements of a data set. Lists with larger elements come first, for alignment.
template <class Set, class Visit>
void each_list(Set& set, Visit visit) {
    visit(set.validation);
    visit(set.system_ends);
    visit(set.measured_mean);
    visit(set.measured_deviation);
    visit(set.labels);
    visit(set.targets);
    visit(set.pixels);
}

template <class T>
std::size_t bytes_of(const Elements<T>& list) {
    return list.size() * sizeof(T);
}

/// Returns the two messages of a block: the places of streamed pixels, and the class names. The first message is empty
/// without streamed pixels, the second without class names.
std::array<std::string, 2> messages_of(const Dataset& set) {
    return {set.store ? to_message(set.store->pieces()) : "",
            set.class_names.empty() ? "" : to_message(set.class_names)};
}

}  // namespace

std::size_t block_bytes(const Dataset& set) {
    std::size_t bytes = sizeof(Head);
    for (const std::string& message : messages_of(set)) {
        bytes += message.size();
    }
    each_list(set, [&bytes](const auto& list) { bytes += bytes_of(list); });
    return bytes;
}

void write_block(const Dataset& set, std::span<std::byte> block) {
    if (block.size() != block_bytes(set)) {
        throw Error("a data set does not fit the block of memory that it is written to");
    }
    Head head{set.height, set.width, set.channels, set.classes, set.target_size, set.float_pixels ? 1 : 0};
    std::size_t place = sizeof head;
    std::size_t lists = sizes_at;
    each_list(set, [&](const auto& list) {
        head.at(lists++) = static_cast<std::int64_t>(list.size());
        std::memcpy(block.data() + place, list.data(), bytes_of(list));
        place += bytes_of(list);
    });
    for (const std::string& message : messages_of(set)) {
        head.at(lists++) = static_cast<std::int64_t>(message.size());
        std::memcpy(block.data() + place, message.data(), message.size());
        place += message.size();
    }
    std::memcpy(block.data(), head.data(), sizeof head);
}

Dataset view_block(std::span<const std::byte> block) {
    Head head{};
    std::memcpy(head.data(), block.data(), sizeof head);
    Dataset set{.height = head[0],
                .width = head[1],
                .channels = head[2],
                .classes = head[3],
                .target_size = head[4],
                .float_pixels = head[5] != 0};
    const std::byte* place = block.data() + sizeof head;
    std::size_t lists = sizes_at;
    each_list(set, [&]<class T>(Elements<T>& list) {
        list = Elements<T>(std::span(reinterpret_cast<const T*>(place), static_cast<std::size_t>(head.at(lists++))));
        place += bytes_of(list);
    });
    const auto next_message = [&] {
        const auto size = static_cast<std::size_t>(head.at(lists++));
        place += size;
        return std::string(reinterpret_cast<const char*>(place - size), size);
    };
    if (const std::string pieces = next_message(); !pieces.empty()) {
        set.store = std::make_shared<pixels::Store>(set.image_size(), from_message<std::vector<pixels::Piece>>(pieces));
    }
    if (const std::string names = next_message(); !names.empty()) {
        set.class_names = from_message<std::vector<std::string>>(names);
    }
    return set;
}

}  // namespace finch::data
