#pragma once

#include "finch/base/fields.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

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

/// Values by epoch and name.
using MetricsByEpoch = std::map<std::int32_t, std::map<std::string, double>>;
[[nodiscard]] inline MetricsByEpoch by_epoch(const std::vector<Metric>& metrics) {
    MetricsByEpoch all;
    for (const Metric& one : metrics) {
        all[one.epoch].insert_or_assign(one.name, one.value);
    }
    return all;
}

}  // namespace finch
