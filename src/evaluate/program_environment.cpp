#include "finch/evaluate/program_environment.hpp"

#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/cluster/network.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <netinet/in.h>
#include <sstream>
#include <string_view>
#include <sys/socket.h>

namespace finch::evaluate {
namespace {

/// Of Finch's own MPI and its place in Slurm's step: a program may be an MPI program itself, and frameworks take
/// SLURM_PROCID for the rank.
bool is_of_finch(const std::string& name) {
    static constexpr std::array<std::string_view, 21> beginnings = {
        "OMPI_",        "PMIX_",        "PMI_",          "PRTE_",      "ORTE_",        "OPAL_",         "MPI_LOCAL",
        "HYDRA_",       "MV2_COMM",     "HWLOC_XMLFILE", "SLURM_PMI",  "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID",
        "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP",    "SLURM_TASK", "SLURM_GTIDS",  "FINCH_TEST_",   "FINCH_GENE_"};
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view beginning) { return name.starts_with(beginning); });
}

/// What CUDA_VISIBLE_DEVICES says, or all devices of the node.
std::vector<std::string> visible_devices(const cluster::Environment& environment) {
    std::vector<std::string> devices;
    if (const auto text = environment.text("CUDA_VISIBLE_DEVICES")) {
        std::istringstream words(*text);
        for (std::string word; std::getline(words, word, ',');) {
            devices.push_back(word);
        }
        return devices;
    }
    std::error_code none;
    while (std::filesystem::exists(fmt::format("/dev/nvidia{}", devices.size()), none)) {
        devices.push_back(std::to_string(devices.size()));
    }
    return devices;
}

/// Collective over the worker. Each rank's device, those of the ranks on this node.
std::string devices_of_worker(const comm::Group& group, const WorkerPlaces& places,
                              const std::vector<std::string>& visible) {
    const auto self = static_cast<std::size_t>(group.rank());
    const auto local = static_cast<std::size_t>(places.local_ranks[self]);
    const std::string mine = visible.empty() ? "" : visible[local % visible.size()];
    const std::vector<std::string> all = comm::gather_all(group.get(), mine);
    std::vector<std::string> devices;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const bool is_new = std::find(devices.begin(), devices.end(), all[rank]) == devices.end();
        if (places.nodes[rank] == places.nodes[self] && !all[rank].empty() && is_new) {
            devices.push_back(all[rank]);
        }
    }
    return fmt::format("{}", fmt::join(devices, ","));
}

/// Collective over the worker. Where rank 0's node is to be found from here: by its host's name, or by an address if
/// that is not known here or several nodes have it, and `node` is another name therefore.
std::string address_of_leader(const comm::Group& group, const std::string& node) {
    const std::string name = comm::broadcast(group.get(), group.is_leader() ? cluster::host_name() : "");
    const std::vector<cluster::NetworkPlace> mine = cluster::network_places();
    const std::string leaders = comm::broadcast(group.get(), group.is_leader() ? to_text(mine) : "");
    const std::string address = cluster::address_towards(cluster::network_places_in(leaders), mine);
    return address.empty() || (name == node && cluster::resolves(name)) ? name : address;
}

}  // namespace

ProgramEnvironment::ProgramEnvironment(const comm::Group& group, WorkerPlaces places, config::Launch launch,
                                       int threads) {
    const auto environment = cluster::Environment::of_this_process();
    for (const auto& variable : environment.all()) {
        if (!is_of_finch(variable.first)) {
            variables_.insert(variable);
        }
    }
    const auto begin = places.nodes.begin();
    const std::string& node = places.nodes[static_cast<std::size_t>(group.rank())];
    const auto on_node = std::count(begin, places.nodes.end(), node);
    const bool is_alone = launch == config::Launch::leader;
    variables_["RANK"] = std::to_string(is_alone ? 0 : group.rank());
    variables_["WORLD_SIZE"] = std::to_string(is_alone ? 1 : group.size());
    variables_["LOCAL_RANK"] = std::to_string(is_alone ? 0 : std::count(begin, begin + group.rank(), node));
    variables_["LOCAL_WORLD_SIZE"] = std::to_string(is_alone ? 1 : on_node);
    variables_["MASTER_ADDR"] = on_node == group.size() ? "127.0.0.1" : address_of_leader(group, places.nodes.front());
    variables_.emplace("OMP_NUM_THREADS", std::to_string(threads));
    const std::string devices = devices_of_worker(group, places, visible_devices(environment));
    if (!devices.empty()) {
        variables_["CUDA_VISIBLE_DEVICES"] = devices;
    }
}

std::vector<std::string> ProgramEnvironment::with(std::map<std::string, std::string> more, std::int32_t port) const {
    more["MASTER_PORT"] = std::to_string(port);
    more.insert(variables_.begin(), variables_.end());
    std::vector<std::string> environment;
    for (const auto& [name, value] : more) {
        environment.push_back(name + "=" + value);
    }
    return environment;
}

std::int32_t free_port() {
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket.get(), any, size) != 0 || ::getsockname(socket.get(), any, &size) != 0) {
        return 0;
    }
    return ntohs(address.sin_port);
}

}  // namespace finch::evaluate
