#pragma once

#include "finch/search/individual.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What the archive's writer and reader agree on beside the columns' names.
namespace finch::store {

/// Of the tables; at least that of the individuals' bytes.
inline constexpr std::int64_t archive_version = 1;
static_assert(archive_version >= search::individual_version);
inline constexpr std::int64_t oldest_archive_version = 1;  ///< that this program reads
inline constexpr const char* archive_format = "finch population";

/// The kinds of genes in the order of search::Gene::kind.
inline const std::vector<std::string> gene_kinds{"real", "int", "choice"};

}  // namespace finch::store
