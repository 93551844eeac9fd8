#pragma once

#include "finch/config/schema.hpp"

#include <string>
#include <vector>

namespace finch::config {

/// The table of all keys of a configuration, top level first.
[[nodiscard]] const Domain& configuration();
/// The parts of it in which genes may stand.
[[nodiscard]] const Domain& data_table();
[[nodiscard]] const Domain& model_table();
[[nodiscard]] const Domain& training_table();

/// The words of choices, in the order of the enumerations that they stand for.
namespace words {
extern const std::vector<std::string> data_kinds;
extern const std::vector<std::string> data_axes;
extern const std::vector<std::string> activations;
extern const std::vector<std::string> layer_activations;
extern const std::vector<std::string> scale_learning_rate;
extern const std::vector<std::string> precisions;
extern const std::vector<std::string> scales;
extern const std::vector<std::string> objectives;
extern const std::vector<std::string> exchange_kinds;
extern const std::vector<std::string> topologies;
extern const std::vector<std::string> devices;
extern const std::vector<std::string> communicators;
extern const std::vector<std::string> log_levels;
extern const std::vector<std::string> log_ranks;
}  // namespace words

}  // namespace finch::config
