#include "finch/search/share.hpp"

#include <limits>
#include <utility>

namespace finch::search {
namespace {

/// Returns the islands to which `id` was copied, with their original numbers.
std::vector<std::int32_t> memberships_of(const Population& population, Id id) {
    const auto& all = population.memberships();
    std::vector<std::int32_t> islands;
    for (auto copy = all.lower_bound({id, std::numeric_limits<std::int32_t>::min()});
         copy != all.end() && copy->first == id; ++copy) {
        islands.push_back(copy->second);
    }
    return islands;
}

}  // namespace

std::vector<std::vector<const Individual*>> needed_by_islands(const Population& population) {
    std::vector<std::vector<const Individual*>> needed(static_cast<std::size_t>(population.islands()));
    const Individual* best = population.best();
    const Individual* best_trained = population.best_trained();
    const auto add = [&needed](int island, const Individual& individual) {
        auto& known = needed[static_cast<std::size_t>(island)];
        if (known.empty() || known.back() != &individual) {
            known.push_back(&individual);
        }
    };
    for (const auto& [id, individual] : population.individuals()) {
        if (&individual == best || &individual == best_trained) {
            for (int island = 0; island < population.islands(); ++island) {
                add(island, individual);
            }
            continue;
        }
        add(population.island_now(individual.island), individual);
        if (population.kind() == ExchangeKind::migration) {
            add(population.home(id).island, individual);
        } else if (population.kind() == ExchangeKind::pollination) {
            for (const std::int32_t island : memberships_of(population, id)) {
                add(population.island_now(island), individual);
            }
        }
    }
    return needed;
}

void write_known(const Population& population, const Individual& individual, Bytes& out) {
    write_individual(individual, false, out);
    const auto home = population.homes().find(individual.id);
    ByteWriter writer(out);
    writer.put(home != population.homes().end() ? home->second : Home{});
    writer.put_all(std::span<const std::int32_t>(memberships_of(population, individual.id)));
}

void merge_known(ByteReader& reader, Population& population) {
    Individual individual = read_individual(reader);
    const Id id = individual.id;
    // Merges homes and memberships before the individual, so that each index receives the individual only once.
    population.merge(id, reader.get<Home>());
    for (const std::int32_t island : reader.get_all<std::int32_t>()) {
        population.merge_membership(id, island);
    }
    population.merge(std::move(individual));
}

}  // namespace finch::search
