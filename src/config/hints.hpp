#pragma once

#include "finch/config/schema.hpp"

#include <span>
#include <string>

/// Hints in messages: what people probably meant. Each function returns " (did you mean …?)", or an empty text if
/// nothing similar is known.
namespace finch::config {

/// Hint for `name`, which is no key of the section `tree` at `path`; `known` are its keys. Names a known key, or the
/// path of the key in another section.
[[nodiscard]] std::string meant_key(const std::string& name, std::span<const std::string> known, const Tree& tree,
                                    const std::string& path);

/// Hint for a list of scalars where a gene should stand: "{choice: [relu, tanh]}".
[[nodiscard]] std::string meant_gene(const Tree& list);

/// Hint for an unquoted text where a gene should stand, such as loguniform(1e-4, 1e-1) or (1, 3).
[[nodiscard]] std::string meant_call(const Tree& scalar);

/// Hint for `tree`, which stands for the value at `path` and looks like a gene: a list of several values, or a section
/// such as {choice: [relu, tanh]}. Genes stand in search.space.
[[nodiscard]] std::string meant_gene_of(const Tree& tree, const std::string& path);

/// Hint for a section with several keys where the name of one alternative should stand: {type: SGD, momentum: 0.9}, or
/// keys that are not indented below the alternative's name.
[[nodiscard]] std::string meant_alternative(const Variants& variants, const Tree& tree);

/// Hint for a list of sections where one section should stand, or for a section in place of a list.
[[nodiscard]] std::string meant_dash(const Tree& tree);

/// Hint for a text with ": ", which YAML reads as a section.
[[nodiscard]] std::string meant_text(const Domain& domain, const Tree& tree);

}  // namespace finch::config
