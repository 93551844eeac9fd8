#include "finch/run/load_data.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/pixels/loader.hpp"
#include "finch/run/on_every_rank.hpp"

#include <functional>
#include <new>
#include <string>

namespace finch::run {

namespace {

using Set = data::Dataset data::Datasets::*;

/// Collective over the world. Loads the data by `read`. The set `shared` is in the shared memory of the node, the set
/// `other` is on world rank 0 only.
LoadedData load_shared(const std::function<data::Datasets()>& read, const data::Options& options, Set shared,
                       Set other) {
    LoadedData loaded;
    loaded.node = comm::split_by_node(MPI_COMM_WORLD);
    const bool reads = comm::rank_of(loaded.node.get()) == 0;
    data::Datasets& sets = loaded.sets;
    on_every_rank(MPI_COMM_WORLD, [&] {
        if (reads) {
            sets = read();
        }
    });
    sets.fingerprint = comm::broadcast(loaded.node.get(), sets.fingerprint);
    const std::string first = comm::broadcast(MPI_COMM_WORLD, sets.fingerprint);
    on_every_rank(MPI_COMM_WORLD, [&] {
        if (sets.fingerprint != first) {
            throw Error(fmt::format("{} reads other data than world rank 0 (checksum {} here, {} there): {}",
                                    cluster::host_name(), sets.fingerprint, first, data::places_text(options)));
        }
    });
    if (comm::rank_of(MPI_COMM_WORLD) != 0) {
        sets.*other = {};
    }
    try {
        loaded.memory.emplace(loaded.node.get(), reads ? data::block_bytes(sets.*shared) : 0);
    } catch (const std::bad_alloc&) {
        throw Error(
            fmt::format("{}: there is no memory to share the data in; data.memory: streamed leaves the pixels of "
                        "files on the disk",
                        cluster::host_name()));
    }
    if (reads) {
        data::write_block(sets.*shared, loaded.memory->bytes());
        if (!loaded.memory->problem().empty()) {
            spdlog::warn("{}: every rank has a copy of the data: {}", cluster::host_name(), loaded.memory->problem());
        }
    }
    sets.*shared = {};
    loaded.memory->publish();
    on_every_rank(MPI_COMM_WORLD, [&] {
        sets.*shared = data::view_block(loaded.memory->bytes());
        if (const auto& store = (sets.*shared).store) {
            static_cast<void>(store->threads(options.prefetch.threads));
        }
    });
    return loaded;
}

}  // namespace

LoadedData load_on_each_node(const data::Options& options, std::uint64_t seed) {
    return load_shared([&] { return data::load(options, seed); }, options, &data::Datasets::training,
                       &data::Datasets::test);
}

LoadedData load_test_on_each_node(const data::Options& options, std::uint64_t seed, Reads reads) {
    const auto read = reads == Reads::both_sets ? data::load : data::load_test;
    return load_shared([&] { return read(options, seed); }, options, &data::Datasets::test, &data::Datasets::training);
}

}  // namespace finch::run
