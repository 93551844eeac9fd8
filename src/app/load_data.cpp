#include "finch/app/load_data.hpp"

#include "finch/app/on_every_rank.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/environment.hpp"

#include <utility>

namespace finch::app {

LoadedData load_on_each_node(const data::Options& options, std::uint64_t seed) {
    LoadedData loaded;
    loaded.node = comm::split_by_node(MPI_COMM_WORLD);
    const bool reads = comm::rank_of(loaded.node.get()) == 0;
    data::Datasets& sets = loaded.sets;
    on_every_rank(MPI_COMM_WORLD, [&] {
        if (reads) {
            sets = data::load(options, seed);
        }
    });
    sets.fingerprint = comm::broadcast(loaded.node.get(), sets.fingerprint);
    const std::string first = comm::broadcast(MPI_COMM_WORLD, sets.fingerprint);
    on_every_rank(MPI_COMM_WORLD, [&] {
        if (sets.fingerprint != first) {
            throw Error(fmt::format("{} reads other data than world rank 0 (checksum {} here, {} there): {}",
                                    cluster::host_name(), sets.fingerprint, first, options.path));
        }
    });
    if (comm::rank_of(MPI_COMM_WORLD) != 0) {
        sets.test = {};
    }
    loaded.memory.emplace(loaded.node.get(), reads ? data::block_bytes(sets.training) : 0);
    if (reads) {
        data::write_block(sets.training, loaded.memory->bytes());
        if (!loaded.memory->problem().empty()) {
            spdlog::warn("{}: every rank has a copy of the data: {}", cluster::host_name(), loaded.memory->problem());
        }
    }
    sets.training = {};
    loaded.memory->publish();
    sets.training = data::view_block(loaded.memory->bytes());
    return loaded;
}

}  // namespace finch::app
