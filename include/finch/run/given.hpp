#pragma once

#include "finch/search/population.hpp"
#include "finch/search/propagator.hpp"

#include <memory>
#include <string>
#include <vector>

namespace finch::run {

/// The one genome that a user named: `genes` are "name=value", one for every gene that is active with them and not
/// fixed. Throws ConfigError that names the genes that are missing, unknown or out of bounds.
[[nodiscard]] search::Genome given_genome(const search::Space& space, const std::vector<std::string>& genes);

/// Always gives `genome`.
[[nodiscard]] std::unique_ptr<search::Propagator> fixed_genome_propagator(search::Genome genome);

/// Tells genomes apart in a file's name: eight hexadecimal digits, the same on every machine.
[[nodiscard]] std::string short_name(const search::Space& space, const search::Genome& genome);

/// Throws ConfigError with the genes that differ where `population`, found in `place`, holds an individual of another
/// genome.
void check_same_genes(const search::Space& space, const search::Genome& genome, const search::Population& population,
                      const std::string& place);

}  // namespace finch::run
