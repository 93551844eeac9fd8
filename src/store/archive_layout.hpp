#pragma once

#include "finch/search/individual.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The layout that the archive's writer and reader share, except for the column names.
namespace finch::store {

inline constexpr const char* archive_format = "finch population";

/// The kinds of genes in the order of search::Gene::kind.
inline const std::vector<std::string> gene_kinds{"real", "int", "choice"};

}  // namespace finch::store
