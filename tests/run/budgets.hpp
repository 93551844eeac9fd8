#pragma once

#include "finch/island/options.hpp"

#include <cstdint>
#include <optional>

namespace finch::run {

/// Returns a budget with only the limit `member`.
template <class Amount>
island::Budget budget(std::optional<Amount> island::Budget::*member, Amount amount) {
    island::Budget made;
    made.*member = amount;
    return made;
}
inline island::Budget evaluations(std::int64_t count) {
    return budget(&island::Budget::evaluations, count);
}
inline island::Budget generations(std::int64_t count) {
    return budget(&island::Budget::generations, count);
}
inline island::Budget epochs(std::int64_t count) {
    return budget(&island::Budget::epochs, count);
}
inline island::Budget hours(double count) {
    return budget(&island::Budget::hours, count);
}

}  // namespace finch::run
