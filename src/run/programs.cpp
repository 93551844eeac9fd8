#include "finch/run/programs.hpp"

#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/run/on_every_rank.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <sstream>

namespace finch::run {
namespace {

/// Collective over the world. Rank 0 logs a warning once for all ranks with a problem.
void warn_of_devices(const std::string& problem, int world_rank) {
    std::vector<std::string> problems = comm::gather_all(MPI_COMM_WORLD, problem);
    std::erase(problems, "");
    if (world_rank == 0 && !problems.empty()) {
        spdlog::warn("{}{}", problems.front(),
                     problems.size() > 1 ? fmt::format(" (the same on {} ranks)", problems.size()) : "");
    }
}

/// Collective over the world. Returns a warning if programs of two workers see one device.
std::string shared_device(const evaluate::ProgramDevices& mine, const Placement& placement) {
    const auto environment = cluster::Environment::at_start();
    const std::array by_task{"SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_GPU_BIND"};
    // Slurm may then show each rank another device under the same number.
    const bool is_by_task =
        std::ranges::any_of(by_task, [&](const char* name) { return environment.text(name).has_value(); });
    std::map<std::string, int> workers;  // by device
    const auto all = comm::gather_all(MPI_COMM_WORLD, to_message(is_by_task ? evaluate::Variables{} : mine.variables));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const cluster::Place& place = placement.mine(static_cast<int>(rank));
        const auto variables = from_message<evaluate::Variables>(all[rank]);
        for (const auto& [name, devices] : variables) {
            if (variables.contains("ROCR_VISIBLE_DEVICES") && name != "ROCR_VISIBLE_DEVICES") {
                continue;  // the numbers of HIP and OpenCL count only the devices in ROCR_VISIBLE_DEVICES
            }
            std::istringstream numbers(devices);
            for (std::string number; std::getline(numbers, number, ',');) {
                const std::string device = fmt::format("{}={} on {}", name, number, place.node);
                const int other = workers.emplace(device, place.worker).first->second;
                if (other != place.worker) {
                    return fmt::format(
                        "programs of the workers {} and {} share the device {}: request as many devices "
                        "as ranks, or write workers.share_device: true",
                        other, place.worker, device);
                }
            }
        }
    }
    return "";
}

}  // namespace

std::optional<PreparedPrograms> prepare_programs(const config::Config& config, const evaluate::TemplateTexts& texts) {
    const auto* const objective = std::get_if<config::CommandObjective>(&config.objective);
    if (objective == nullptr) {
        return std::nullopt;
    }
    return PreparedPrograms{
        evaluate::fingerprint(texts),
        evaluate::CommandLine(*objective, config.space, config.seed, texts, std::filesystem::current_path())};
}

std::optional<PreparedPrograms> prepare_programs_everywhere(const config::Config& config) {
    const auto* const objective = std::get_if<config::CommandObjective>(&config.objective);
    if (objective == nullptr) {
        return std::nullopt;
    }
    const auto texts = from_message<evaluate::TemplateTexts>(
        on_rank_zero(MPI_COMM_WORLD, [&] { return to_message(evaluate::read_templates(*objective)); }));
    auto prepared = prepare_programs(config, texts);
    on_every_rank(MPI_COMM_WORLD, [&] { evaluate::check_program(prepared->line.program()); });
    return prepared;
}

CommandNotes command_notes(const evaluate::CommandLine& line) {
    CommandNotes notes;
    for (const auto& shared : line.shared_files()) {
        const std::string what =
            fmt::format("search.objective.command: '{}' is taken to be the file {}, one for all workers",
                        shared.argument, shared.file.string());
        if (shared.may_be_written) {
            notes.warnings.push_back(fmt::format("{}; if programs write it, write {{folder}}/{}, a file of each own",
                                                 what, std::filesystem::path(shared.argument).filename().string()));
        } else {
            notes.remarks.push_back(what);
        }
    }
    if (const std::string word = line.shell_word(); !word.empty()) {
        notes.warnings.push_back(fmt::format(
            "search.objective.command: '{}' is a plain argument of the program; shell: true lets a shell read it, "
            "quotes make it plain without this warning",
            word));
    }
    if (const std::string word = line.absent_script(); !word.empty()) {
        notes.warnings.push_back(
            fmt::format("search.objective.command: '{}' is no file here{}", word, path_hint(word)));
    }
    const std::vector<std::string> foreign = line.foreign_placeholders();
    notes.warnings.insert(notes.warnings.end(), foreign.begin(), foreign.end());
    return notes;
}

std::unique_ptr<evaluate::CommandEvaluator> make_command_evaluator(
    const config::Config& config, const PreparedPrograms& prepared, const comm::Group& group,
    process::Launcher& launcher, const Placement& placement, int world_rank, const store::RunDirectory& directory,
    std::uint64_t number, energy::Meter* meter) {
    const auto& objective = std::get<config::CommandObjective>(config.objective);
    const std::filesystem::path run = std::filesystem::absolute(directory.root()).lexically_normal();
    evaluate::Programs::Place place{
        .ranks = {}, .threads = placement.threads, .run = store::RunDirectory(run), .number = number};
    for (const cluster::Place& one : placement.layout.places) {
        if (one.worker == placement.mine(world_rank).worker) {
            place.ranks.nodes.push_back(one.node);  // ordered by rank within the worker
            place.ranks.local_ranks.push_back(one.local_rank);
        }
    }
    const evaluate::ProgramDevices devices =
        evaluate::devices_of_worker(group, place.ranks, objective.launch, cluster::Environment::at_start());
    const std::string shared = shared_device(devices, placement);
    const bool is_told = world_rank == 0 && devices.problem.empty() && !config.workers.share_device;
    warn_of_devices(is_told ? shared : devices.problem, world_rank);
    if (objective.launch == config::Launch::leader) {
        const std::vector<std::string>& nodes = place.ranks.nodes;
        place.threads *= static_cast<int>(std::count(nodes.begin(), nodes.end(), nodes.front()));
    }
    return std::make_unique<evaluate::CommandEvaluator>(config, group, prepared.line, launcher, std::move(place),
                                                        meter);
}

}  // namespace finch::run
