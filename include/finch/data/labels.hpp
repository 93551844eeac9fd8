#pragma once

#include "finch/data/dataset.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// Texts about classes for messages.
namespace finch::data {

/// Returns the label as text: "3", or "3 (dog)" if the classes have names.
[[nodiscard]] std::string label_text(const Dataset& set, std::int64_t label);

/// Returns at most ten class names as text: "0 cat, 1 dog"; empty if the classes have no names.
[[nodiscard]] std::string class_names_text(const Dataset& set);

/// Throws ConfigError if `names`, the class names of the data, differ from `trained`, the class names that a network
/// was trained with. An empty list means that the names are not known.
void check_trained_names(const std::vector<std::string>& trained, const std::vector<std::string>& names);

/// Gives `set` the labels of a network with the classes `trained`, by name, if both have names, or throws ConfigError.
void use_trained_classes(const std::vector<std::string>& trained, Dataset& set);

/// Describes the labels that no training image has, and names the other sets that contain them. Returns an empty text
/// if there are no such labels, or if the data have targets. `test` may be empty.
[[nodiscard]] std::string untrained_labels_text(const Dataset& training, const Dataset& test, const Split& split);

}  // namespace finch::data
