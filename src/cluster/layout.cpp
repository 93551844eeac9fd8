#include "finch/cluster/layout.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>

namespace finch::cluster {
namespace {

std::size_t index(int value) {
    return static_cast<std::size_t>(value);
}

/// The world ranks by node. Nodes are in the order of their first world rank.
struct Nodes {
    std::vector<std::string> names;
    std::vector<std::vector<int>> ranks;
};

Nodes nodes_of(const std::vector<std::string>& node_of_rank) {
    Nodes nodes;
    std::map<std::string, std::size_t> number;
    for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
        const auto [found, is_new] = number.emplace(node_of_rank[rank], nodes.names.size());
        if (is_new) {
            nodes.names.push_back(node_of_rank[rank]);
            nodes.ranks.emplace_back();
        }
        nodes.ranks[found->second].push_back(static_cast<int>(rank));
    }
    return nodes;
}

/// Returns the number of workers that `island_sizes` require. Returns 0 if `island_sizes` is empty: any number of
/// workers from `islands` on is then valid.
int workers_asked_for(const LayoutOptions& options) {
    return std::accumulate(options.island_sizes.begin(), options.island_sizes.end(), 0);
}

void check_options(const LayoutOptions& options) {
    if (options.ranks_per_worker < 1) {
        throw ConfigError(fmt::format("workers.ranks: {} is not at least 1", options.ranks_per_worker));
    }
    if (options.island_sizes.empty() && options.islands < 0) {
        throw ConfigError(fmt::format("workers.islands: {} is not at least 1", options.islands));
    }
    for (const int size : options.island_sizes) {
        if (size < 1) {
            throw ConfigError(fmt::format("workers.islands: [{}]: every island needs at least 1 worker",
                                          fmt::join(options.island_sizes, ", ")));
        }
    }
}

/// Returns a number of ranks with its verb: "4 ranks are", "1 rank is".
std::string that_are(int ranks) {
    return counted(ranks, "rank") + (ranks == 1 ? " is" : " are");
}

/// Returns "start 4 or 8 ranks": the nearest numbers of ranks that give whole workers, and enough workers for the
/// islands.
std::string fitting_counts(int ranks, const LayoutOptions& options) {
    const int asked = workers_asked_for(options);
    if (asked > 0) {
        return fmt::format("start {}", counted(asked * options.ranks_per_worker, "rank"));
    }
    const int least = std::max(1, options.islands) * options.ranks_per_worker;
    const int below = ranks / options.ranks_per_worker * options.ranks_per_worker;
    const int above = std::max(below + options.ranks_per_worker, least);
    return below >= least ? fmt::format("start {} or {} ranks", below, above) : "start " + counted(above, "rank");
}

/// Returns "2 or 3": the group sizes nearest to `wanted` that divide `ranks`.
std::string fitting_sizes(int ranks, int wanted) {
    int below = std::min(wanted, ranks);
    while (ranks % below != 0) {
        --below;
    }
    int above = wanted;
    while (above < ranks && ranks % above != 0) {
        ++above;
    }
    return above <= ranks ? fmt::format("{} or {}", below, above) : fmt::format("{}", below);
}

/// Returns the number of workers of each island. Throws ConfigError if `ranks` do not fit the options.
std::vector<int> island_sizes(int ranks, const LayoutOptions& options) {
    check_options(options);
    const int group = options.ranks_per_worker;
    if (ranks % group != 0) {
        throw ConfigError(
            fmt::format("workers.ranks: {} cannot be dealt into workers of {}; {}, or set "
                        "workers.ranks to {}",
                        counted(ranks, "rank"), group, fitting_counts(ranks, options), fitting_sizes(ranks, group)));
    }
    const int workers = ranks / group;
    const int asked = workers_asked_for(options);
    if (asked > 0 && asked != workers) {
        throw ConfigError(
            fmt::format("workers.islands: [{}] are {} of {}, but {} {}; "
                        "{}, or give sizes whose sum is {}",
                        fmt::join(options.island_sizes, ", "), counted(asked, "worker"), counted(group, "rank"),
                        that_are(ranks), counted(workers, "worker"), fitting_counts(ranks, options), workers));
    }
    if (asked > 0) {
        return options.island_sizes;
    }
    if (workers < options.islands) {
        throw ConfigError(
            fmt::format("workers.islands: {} {} of {}, too few for {}; {}, or "
                        "set workers.islands to at most {}",
                        that_are(ranks), counted(workers, "worker"), group, counted(options.islands, "island"),
                        fitting_counts(ranks, options), workers));
    }
    const int islands = options.islands > 0 ? options.islands : automatic_islands(workers);
    std::vector<int> sizes(index(islands), workers / islands);
    for (int island = 0; island < workers % islands; ++island) {
        ++sizes[index(island)];
    }
    return sizes;
}

void warn_of_unequal_nodes(const Nodes& nodes, std::vector<std::string>& warnings) {
    const auto by_size = [](const std::vector<int>& a, const std::vector<int>& b) { return a.size() < b.size(); };
    const auto [fewest, most] = std::minmax_element(nodes.ranks.begin(), nodes.ranks.end(), by_size);
    if (fewest->size() != most->size()) {
        warnings.push_back(
            fmt::format("the nodes have unequal numbers of ranks: {} has {}, {} has {}",
                        nodes.names[static_cast<std::size_t>(fewest - nodes.ranks.begin())], fewest->size(),
                        nodes.names[static_cast<std::size_t>(most - nodes.ranks.begin())], most->size()));
    }
}

void warn_of_equal_names(const Nodes& nodes, std::vector<std::string>& warnings) {
    const auto named = std::find_if(nodes.names.begin(), nodes.names.end(), has_shared_host_name);
    if (named != nodes.names.end()) {
        warnings.push_back(fmt::format("several nodes have the host name {}, so they are called {}, … here",
                                       named->substr(0, named->rfind('#')), *named));
    }
}

void warn_of_crossing_groups(const Layout& layout, std::vector<std::string>& warnings) {
    std::map<int, std::vector<std::string>> nodes_of_worker;
    for (const Place& place : layout.places) {
        auto& nodes = nodes_of_worker[place.worker];
        if (std::find(nodes.begin(), nodes.end(), place.node) == nodes.end()) {
            nodes.push_back(place.node);
        }
    }
    std::vector<std::string> examples;
    std::size_t crossing = 0;
    for (const auto& [worker, nodes] : nodes_of_worker) {
        if (nodes.size() > 1 && ++crossing <= 3) {
            examples.push_back(fmt::format("worker {}: {}", worker, fmt::join(nodes, ", ")));
        }
    }
    if (crossing > 0) {
        warnings.push_back(
            fmt::format("{} of {} workers cross nodes, so their gradients travel over the network ({}{})", crossing,
                        nodes_of_worker.size(), fmt::join(examples, "; "), crossing > examples.size() ? "; …" : ""));
    }
}

}  // namespace

std::vector<std::string> names_of_nodes(const std::vector<std::string>& host_of_rank,
                                        const std::vector<int>& first_rank_on_node) {
    std::map<std::string, std::map<int, int>> numbers;  // by host: number of each node, by its first rank
    for (std::size_t rank = 0; rank < host_of_rank.size(); ++rank) {
        auto& nodes = numbers[host_of_rank[rank]];
        nodes.emplace(first_rank_on_node[rank], static_cast<int>(nodes.size()) + 1);
    }
    std::vector<std::string> names;
    for (std::size_t rank = 0; rank < host_of_rank.size(); ++rank) {
        const std::string& host = host_of_rank[rank];
        const auto& nodes = numbers.at(host);
        names.push_back(nodes.size() == 1 ? host : fmt::format("{}#{}", host, nodes.at(first_rank_on_node[rank])));
    }
    return names;
}

bool has_shared_host_name(const std::string& node) noexcept {
    return node.find('#') != std::string::npos;
}

int automatic_islands(int workers) noexcept {
    return std::max(1, (workers + most_workers_of_island - 1) / most_workers_of_island);
}

std::vector<int> node_of_island(const Layout& layout) {
    std::vector<int> nodes(index(layout.islands), -1);
    std::map<std::string, int> number;
    for (std::size_t worker = 0; worker < layout.island_of_worker.size(); ++worker) {
        int& node = nodes[index(layout.island_of_worker[worker])];
        const std::string& name = layout.places[index(layout.leaders[worker])].node;
        node = node >= 0 ? node : number.emplace(name, static_cast<int>(number.size())).first->second;
    }
    return nodes;
}

std::vector<int> workers_of_islands(const Layout& layout) {
    std::vector<int> workers(index(layout.islands));
    for (const int island : layout.island_of_worker) {
        ++workers[index(island)];
    }
    return workers;
}

Layout make_layout(const std::vector<std::string>& node_of_rank, const LayoutOptions& options) {
    if (node_of_rank.empty()) {
        throw ConfigError("a layout needs at least one rank");
    }
    const std::vector<int> sizes = island_sizes(static_cast<int>(node_of_rank.size()), options);
    if (const int most = *std::max_element(sizes.begin(), sizes.end()); most > most_workers_of_island) {
        const int workers = std::accumulate(sizes.begin(), sizes.end(), 0);
        throw ConfigError(fmt::format(
            "workers.islands: {} in one island, whose leaders all hear of every result; accepted: "
            "at most {}, so {} islands or more for {}, or auto",
            counted(most, "worker"), most_workers_of_island, automatic_islands(workers), counted(workers, "worker")));
    }
    Layout layout;
    layout.islands = static_cast<int>(sizes.size());
    for (std::size_t island = 0; island < sizes.size(); ++island) {
        layout.island_of_worker.insert(layout.island_of_worker.end(), index(sizes[island]), static_cast<int>(island));
    }
    layout.leaders.resize(layout.island_of_worker.size());
    layout.places.resize(node_of_rank.size());

    const Nodes nodes = nodes_of(node_of_rank);
    int position = 0;
    for (std::size_t node = 0; node < nodes.names.size(); ++node) {
        const auto& ranks = nodes.ranks[node];
        for (std::size_t local = 0; local < ranks.size(); ++local, ++position) {
            Place& place = layout.places[index(ranks[local])];
            place.node = nodes.names[node];
            place.local_rank = static_cast<int>(local);
            place.local_ranks = static_cast<int>(ranks.size());
            place.worker = position / options.ranks_per_worker;
            place.group_rank = position % options.ranks_per_worker;
            place.island = layout.island_of_worker[index(place.worker)];
            if (place.group_rank == 0) {
                layout.leaders[index(place.worker)] = ranks[local];
            }
        }
    }
    warn_of_equal_names(nodes, layout.warnings);
    warn_of_unequal_nodes(nodes, layout.warnings);
    warn_of_crossing_groups(layout, layout.warnings);
    return layout;
}

}  // namespace finch::cluster
