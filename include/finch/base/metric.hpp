#pragma once

#include "finch/base/fields.hpp"

#include <cstdint>
#include <string>

namespace finch {

/// A number beside the learning curve's own, by the name that a program gave it.
struct Metric {
    static constexpr std::size_t longest_name = 64;  ///< in bytes

    std::int32_t epoch = 0;
    std::string name;
    double value = 0;
};

constexpr auto fields_of(const Metric*) {
    return std::tuple{
        Field{"epoch", &Metric::epoch, "1 is the first"},
        Field{"name", &Metric::name, "as it was reported"}.of_width(Metric::longest_name),
        Field{"value", &Metric::value, "as it was reported"},
    };
}
static_assert(lists_every_member<Metric>);

}  // namespace finch
