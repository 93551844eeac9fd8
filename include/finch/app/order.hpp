#pragma once

#include "finch/base/bytes.hpp"
#include "finch/base/named_array.hpp"
#include "finch/search/individual.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace finch::app {

/// What a leader tells its group to do next. A follower never reads a clock, a signal or a message of another worker:
/// it does what the Order says, and so a group cannot split.
struct Order {
    enum class Kind : std::uint32_t { start, advance, snapshot, release, dismiss };
    struct Steps {
        std::uint32_t slot = 0;
        std::uint32_t count = 0;  ///< batches
    };

    Kind kind = Kind::dismiss;
    std::uint32_t slot = 0;         ///< start, snapshot, release
    std::vector<Steps> steps;       ///< advance
    search::Individual individual;  ///< start
    NamedArrays snapshot;           ///< start: empty where it begins at the beginning
};

/// The answer of one rank, the larger is the worse: the group takes the largest.
enum class Status : std::int64_t { running, finished, diverged, out_of_memory, failed };

[[nodiscard]] Bytes encode(const Order& order);
[[nodiscard]] Order decode_order(const Bytes& bytes);

}  // namespace finch::app
