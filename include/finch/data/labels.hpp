#pragma once

#include "finch/data/dataset.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// Texts about classes, for messages.
namespace finch::data {

/// "3", or with a name "3 (dog)".
[[nodiscard]] std::string label_text(const Dataset& set, std::int64_t label);

/// "0 cat, 1 dog": at most ten of them; empty if the classes have no names.
[[nodiscard]] std::string class_names_text(const Dataset& set);

/// Throws ConfigError if `names`, of data, are others than those of the classes that a network was `trained` with.
/// Either may be empty: not known.
void check_trained_names(const std::vector<std::string>& trained, const std::vector<std::string>& names);

/// The labels that no training image has, and where they occur instead; empty if there are none, or there are targets.
/// `test` may be empty.
[[nodiscard]] std::string untrained_labels_text(const Dataset& training, const Dataset& test, const Split& split);

}  // namespace finch::data
