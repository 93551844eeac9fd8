#pragma once

#include "finch/base/fields.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace finch {

/// A named number of an epoch, in addition to the learning curve: one that a user's program reported, or a norm of a
/// layer (training.watch).
struct Metric {
    static constexpr std::size_t longest_name = 64;  ///< in bytes
    /// The beginnings of the names of norms; the layer follows: "weight_norm.3.body.0".
    static constexpr const char* weight_norm = "weight_norm.";
    static constexpr const char* grad_norm = "grad_norm.";

    std::int32_t epoch = 0;
    std::string name;
    double value = 0;
};

constexpr auto fields_of(const Metric*) {
    return std::tuple{
        Field{"epoch", &Metric::epoch, "number of the epoch; 1 is the first"},
        Field{"name", &Metric::name,
              "name of the metric: as the program reported it, or weight_norm.LAYER and grad_norm.LAYER"}
            .of_width(Metric::longest_name),
        Field{"value", &Metric::value, "value of the metric"},
    };
}
static_assert(lists_every_member<Metric>);

/// Values of metrics, by epoch and name.
using MetricsByEpoch = std::map<std::int32_t, std::map<std::string, double>>;
[[nodiscard]] inline MetricsByEpoch by_epoch(const std::vector<Metric>& metrics) {
    MetricsByEpoch all;
    for (const Metric& one : metrics) {
        all[one.epoch].insert_or_assign(one.name, one.value);
    }
    return all;
}

}  // namespace finch
