#include "population_bytes.hpp"

#include <set>
#include <string>

namespace finch::simulate {
namespace {

constexpr std::size_t node_bytes = 4 * sizeof(void*);  ///< size of a tree node without its value

std::size_t bytes_of(const std::string& text) {
    return text.capacity() > std::string().capacity() ? text.capacity() + 1 : 0;
}

std::size_t bytes_of(const search::Individual& individual) {
    return node_bytes + sizeof(search::Id) + sizeof(search::Individual) +
           individual.genome.capacity() * sizeof(double) + individual.curve.capacity() * sizeof(Epoch) +
           individual.metrics.capacity() * sizeof(Metric) + bytes_of(individual.problem) + bytes_of(individual.node) +
           bytes_of(individual.device);
}

}  // namespace

std::size_t population_bytes(const search::Population& population) {
    std::size_t bytes = sizeof(search::Population);
    for (const auto& [id, individual] : population.individuals()) {
        bytes += bytes_of(individual);
    }
    // Each individual is in the index of one island or in the index of unfinished individuals. A copy is also in the
    // index of a second island.
    const std::size_t indexed = population.size() + population.memberships().size();
    bytes += indexed * (node_bytes + sizeof(void*));
    bytes += population.homes().size() * (node_bytes + sizeof(std::pair<search::Id, search::Home>));
    bytes += population.memberships().size() * (node_bytes + sizeof(std::pair<search::Id, std::int32_t>));
    bytes += static_cast<std::size_t>(population.islands()) * (sizeof(std::set<void*>) + sizeof(std::size_t));
    return bytes;
}

}  // namespace finch::simulate
