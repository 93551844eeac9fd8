#pragma once

#include "finch/search/population.hpp"
#include "finch/search/propagator.hpp"

#include <memory>
#include <string>
#include <vector>

namespace finch::run {

/// Returns the genome that a user specified. `genes`: "name=value" for every gene that is active in this genome and not
/// fixed. Throws ConfigError with the names of genes that are missing, unknown or out of bounds.
[[nodiscard]] search::Genome given_genome(const search::Space& space, const std::vector<std::string>& genes);

/// Returns a propagator that always breeds `genome`.
[[nodiscard]] std::unique_ptr<search::Propagator> fixed_genome_propagator(search::Genome genome);

/// Returns a short name of a genome for file names: eight hexadecimal digits, the same on every machine.
[[nodiscard]] std::string short_name(const search::Space& space, const search::Genome& genome);

/// Throws ConfigError with the differing genes if `population` contains an individual with another genome. `place`: the
/// run directory of `population`, for the message.
void check_same_genes(const search::Space& space, const search::Genome& genome, const search::Population& population,
                      const std::string& place);

}  // namespace finch::run
