#include "finch/run/share_run.hpp"

#include "finch/base/bytes.hpp"
#include "finch/search/share.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace finch::run {
namespace {

/// The individuals to send to one island.
struct Delivery {
    int leader = 0;  ///< the island's first leader: its rank among the leaders
    std::span<const search::Individual* const> left;
};

/// Sends the needed individuals to each island in chunks of about chunk_bytes, followed by an empty chunk. Sends one
/// chunk to each island in turn, so all islands merge at the same time.
void send_known(const search::Population& population, std::vector<Delivery> deliveries,
                const std::function<void(int leader, Bytes&)>& send) {
    Bytes chunk;
    chunk.reserve(chunk_bytes + chunk_bytes / 4);
    while (!deliveries.empty()) {
        for (Delivery& delivery : deliveries) {
            chunk.clear();
            for (; !delivery.left.empty() && chunk.size() < chunk_bytes; delivery.left = delivery.left.subspan(1)) {
                search::write_known(population, *delivery.left.front(), chunk);
            }
            const bool is_end = chunk.empty();
            send(delivery.leader, chunk);
            delivery.leader = is_end ? -1 : delivery.leader;
        }
        std::erase_if(deliveries, [](const Delivery& delivery) { return delivery.leader < 0; });
    }
}

/// Receives all chunks before merging them, so world rank 0 can continue early. The first leader of the island forwards
/// the chunks.
void receive_known(search::Population& population, const std::function<Bytes()>& receive) {
    std::vector<Bytes> chunks;
    do {
        chunks.push_back(receive());
    } while (!chunks.back().empty());
    for (Bytes& chunk : chunks) {
        const Bytes known = std::exchange(chunk, {});
        ByteReader reader(known);
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
        std::vector<Delivery> deliveries;
        for (int to = 0; to < islands; ++to) {
            const auto first = std::find(island_of_worker.begin(), island_of_worker.end(), to);
            if (first != island_of_worker.end()) {
                deliveries.push_back(
                    {static_cast<int>(first - island_of_worker.begin()), needed[static_cast<std::size_t>(to)]});
            }
        }
        send_known(opened.population, std::move(deliveries), [&](int leader, Bytes& chunk) {
            leader == 0 ? comm::broadcast(island.get(), chunk) : comm::send_bytes(leaders, leader, chunk);
        });
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

}  // namespace finch::run
