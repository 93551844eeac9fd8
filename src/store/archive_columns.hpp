#pragma once

#include "finch/hdf5/table.hpp"
#include "finch/search/individual.hpp"
#include "finch/search/record.hpp"

#include <string>
#include <vector>

/// How the archive's tables are made of individuals, epochs, events and reports, and these of tables. Written and read
/// in one place, so that both sides name the same columns.
namespace finch::store {

using Columns = std::vector<hdf5::Column>;

[[nodiscard]] Columns individual_columns(const search::Space& space,
                                         const std::vector<const search::Individual*>& individuals);
[[nodiscard]] std::vector<search::Individual> individuals_of(const search::Space& space, const Columns& columns);

[[nodiscard]] Columns curve_columns(const std::vector<const search::Individual*>& individuals);
/// Adds the epochs to the individuals that they belong to; `individuals` in the order of ids.
void add_curves(const Columns& columns, std::vector<search::Individual>& individuals);

[[nodiscard]] Columns gene_columns(const search::Space& space);
[[nodiscard]] search::Space space_of(const Columns& columns);

[[nodiscard]] Columns event_columns(const std::vector<search::Event>& events);
[[nodiscard]] std::vector<search::Event> events_of(const Columns& columns);

[[nodiscard]] Columns report_columns(const std::vector<search::WorkerReport>& reports);
[[nodiscard]] std::vector<search::WorkerReport> reports_of(const Columns& columns);

}  // namespace finch::store
