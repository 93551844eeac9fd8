#include "finch/base/format.hpp"
#include "finch/base/message.hpp"
#include "finch/cluster/machine.hpp"
#include "finch/evaluate/program_environment.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <string_view>

namespace finch::evaluate {
namespace {

/// Variables with which Slurm and users assign devices to a process.
constexpr std::array<std::string_view, 5> variables_of_devices{
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL"};

using Devices = std::map<std::string, std::vector<std::string>>;  ///< by variable

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> devices;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) {
        devices.push_back(word);
    }
    return devices;
}

/// Returns the devices that the variables name. Without CUDA_VISIBLE_DEVICES, returns all CUDA devices of the node.
Devices visible_devices(const cluster::Environment& started) {
    Devices visible;
    for (const std::string_view name : variables_of_devices) {
        const std::string text = started.text(std::string(name)).value_or("");
        if (!text.empty() && text != "-1" && text != "NoDevFiles") {
            visible.emplace(name, split(text));
        }
    }
    const auto count = static_cast<std::size_t>(cluster::nvidia_device_files());  // CUDA numbers them without gaps
    std::vector<std::string> of_node;
    while (of_node.size() < count) {
        of_node.push_back(std::to_string(of_node.size()));
    }
    if (!started.text("CUDA_VISIBLE_DEVICES") && !of_node.empty()) {
        visible.emplace("CUDA_VISIBLE_DEVICES", of_node);
    }
    return visible;
}

/// Renumbers devices for HIP and OpenCL, which count only the devices in ROCR_VISIBLE_DEVICES. All devices in
/// ROCR_VISIBLE_DEVICES belong to the worker. HIP also reads CUDA_VISIBLE_DEVICES.
void number_anew_behind_rocr(Devices& devices) {
    if (!devices.contains("ROCR_VISIBLE_DEVICES")) {
        return;
    }
    std::vector<std::string> numbers;
    while (numbers.size() < devices["ROCR_VISIBLE_DEVICES"].size()) {
        numbers.push_back(std::to_string(numbers.size()));
    }
    std::error_code none;
    const bool is_of_amd = std::filesystem::exists("/dev/kfd", none);
    for (auto& [name, visible] : devices) {
        if (name == "HIP_VISIBLE_DEVICES" || name == "GPU_DEVICE_ORDINAL" ||
            (name == "CUDA_VISIBLE_DEVICES" && is_of_amd)) {
            visible = numbers;
        }
    }
}

bool is_part(const std::string& device) {
    return device.starts_with("MIG");
}

/// Returns how many devices one process sees: CUDA shows at most one MIG device.
std::size_t seen_by_one(const std::vector<std::string>& devices) {
    return std::any_of(devices.begin(), devices.end(), is_part) ? 1 : devices.size();
}

}  // namespace

ProgramDevices devices_of_worker(const comm::Group& group, const WorkerPlaces& worker, config::Launch launch,
                                 const cluster::Environment& started) {
    const auto self = static_cast<std::size_t>(group.rank());
    Variables mine;
    for (const auto& [name, visible] : visible_devices(started)) {
        mine[name] = visible[static_cast<std::size_t>(worker.local_ranks[self]) % visible.size()];
    }
    Devices devices;
    std::size_t ranks_here = 0;
    const std::vector<std::string> all = comm::gather_all(group.get(), to_message(mine));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (worker.nodes[rank] != worker.nodes[self]) {
            continue;
        }
        ++ranks_here;
        for (const auto& [name, device] : from_message<Variables>(all[rank])) {
            std::vector<std::string>& known = devices[name];
            if (std::find(known.begin(), known.end(), device) == known.end()) {
                known.push_back(device);
            }
        }
    }
    number_anew_behind_rocr(devices);
    ProgramDevices found;
    for (const auto& [name, of_node] : devices) {
        found.variables[name] = fmt::format("{}", fmt::join(of_node, ","));
        found.seen = seen_by_one(of_node);
        const bool is_mig = std::any_of(of_node.begin(), of_node.end(), is_part);
        const bool leader_sees_all = !is_mig && !started.text("SLURM_GPUS_PER_TASK");
        if (found.seen < ranks_here && (launch == config::Launch::ranks || !leader_sees_all) && found.problem.empty()) {
            found.problem = fmt::format(
                "on {} the {} ranks of a worker need a device each, but their programs see {} ({}={}): {}",
                worker.nodes[self], ranks_here, found.seen, name, found.variables[name],
                is_mig ? "a process sees at most one MIG device; set workers.ranks: 1, or use whole GPUs"
                       : "request --gpus-per-node instead of --gpus-per-task, and as many devices as ranks; or set "
                         "workers.ranks: 1");
        }
    }
    return found;
}

}  // namespace finch::evaluate
