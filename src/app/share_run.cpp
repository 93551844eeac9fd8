#include "finch/app/share_run.hpp"

#include "finch/base/bytes.hpp"
#include "finch/search/share.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace finch::app {
namespace {

/// What an island needs, in chunks of about chunk_bytes; an empty one ends it.
void send_known(const search::Population& population, const std::vector<const search::Individual*>& needed,
                const std::function<void(Bytes&)>& send) {
    Bytes chunk;
    for (const search::Individual* individual : needed) {
        search::write_known(population, *individual, chunk);
        if (chunk.size() >= chunk_bytes) {
            send(chunk);
            chunk.clear();
        }
    }
    if (!chunk.empty()) {
        send(chunk);
    }
    Bytes end;
    send(end);
}

/// The island's own leader passes on what it receives.
void receive_known(search::Population& population, const std::function<Bytes()>& receive) {
    for (Bytes chunk = receive(); !chunk.empty(); chunk = receive()) {
        ByteReader reader(chunk);
        while (reader.left() > 0) {
            search::merge_known(reader, population);
        }
    }
}

}  // namespace

OpenedRun share_run(MPI_Comm leaders, OpenedRun opened, std::span<const int> island_of_worker,
                    search::ExchangeKind kind, int islands, std::vector<search::Cost> costs) {
    const auto self = static_cast<std::size_t>(comm::rank_of(leaders));
    const comm::Communicator island = comm::split(leaders, island_of_worker[self]);
    if (self == 0) {
        const auto needed = search::needed_by_islands(opened.population);
        for (int to = 0; to < islands; ++to) {
            const auto first = std::find(island_of_worker.begin(), island_of_worker.end(), to);
            if (first == island_of_worker.end()) {
                continue;
            }
            const auto leader = static_cast<int>(first - island_of_worker.begin());
            send_known(opened.population, needed[static_cast<std::size_t>(to)], [&](Bytes& chunk) {
                leader == 0 ? comm::broadcast(island.get(), chunk) : comm::send_bytes(leaders, leader, chunk);
            });
        }
        return opened;
    }
    opened.population = search::Population(kind, islands, std::move(costs));
    const bool passes_on = comm::rank_of(island.get()) == 0;
    receive_known(opened.population, [&] {
        Bytes chunk = passes_on ? comm::receive_bytes(leaders, 0) : Bytes();
        comm::broadcast(island.get(), chunk);
        return chunk;
    });
    return opened;
}

}  // namespace finch::app
