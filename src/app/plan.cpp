#include "finch/app/plan.hpp"

#include "finch/app/plan_disk.hpp"
#include "finch/app/plan_memory.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/allocation.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/config/trial_genomes.hpp"
#include "finch/energy/meter.hpp"
#include "finch/run/checks.hpp"
#include "finch/run/devices.hpp"
#include "finch/run/evolve.hpp"
#include "finch/run/first_guesses.hpp"
#include "finch/run/opening.hpp"
#include "finch/run/programs.hpp"
#include "finch/run/reuse.hpp"
#include "finch/run/startup.hpp"
#include "finch/store/resume.hpp"
#include "finch/train/training.hpp"

#include <algorithm>

namespace finch::app {
namespace {

/// Returns the budget as text: "the search ends after 200 evaluations or 2 hours".
std::string budget_text(const island::Budget& budget, const search::Measure& measure) {
    std::vector<std::string> ends;
    const auto add = [&ends](const auto& amount, const std::string& format) {
        if (amount) {
            ends.push_back(fmt::format(fmt::runtime(format), *amount));
        }
    };
    add(budget.evaluations, "{} evaluations");
    add(budget.generations, "{} evaluations of each worker");
    add(budget.epochs, "{} epochs of all trainings");
    add(budget.hours, "{} hours");
    add(budget.node_hours, "{} node hours");
    add(budget.target_loss, "a best " + measure.name + " of {}");
    return fmt::format("the search ends after {}\n", fmt::join(ends, " or "));
}

/// Returns the device map that finch evolve would make if every rank sees `gpus_per_node` GPUs.
cluster::DeviceMap map_devices(const config::Config& config, const cluster::Layout& layout, int gpus_per_node) {
    if (!config.trains()) {
        cluster::DeviceMap map;
        map.device.assign(layout.places.size(), cluster::no_device);
        return map;
    }
    cluster::SeenDevices seen;
    for (int gpu = 0; gpu < gpus_per_node; ++gpu) {
        seen.uuids.push_back(fmt::format("GPU-{}", gpu));
    }
    seen.problem = "--gpus-per-node is 0";
    seen.has_nccl = comm::has_nccl();
    return cluster::map_devices(layout.places, std::vector(layout.places.size(), seen), run::device_wishes(config));
}

/// Throws ConfigError if the networks need a precision that no CPU supports. If only this CPU lacks the precision,
/// returns a remark: finch plan may run on a login node.
std::string precision_text(const config::Config& config, const backend::Device& device) {
    bool lacks = false;
    for (const train::Recipe& recipe : config::trial_recipes(config)) {
        const train::Precision precision = recipe.training.precision;
        if (precision == train::Precision::bfloat16 && !device.supports(precision)) {
            lacks = true;
        } else {
            train::check_precision(precision, device);
        }
    }
    return lacks ? "remark: training.precision: bfloat16 needs AVX512-BF16 or AMX, which this machine lacks; finch "
                   "evolve refuses nodes without\n"
                 : "";
}

/// Returns the layout of the workers. If --ranks-per-node is missing, errors name it.
cluster::Layout layout_of(const config::Config& config, const Question& question) {
    try {
        return cluster::make_layout(question.node_of_rank, run::layout_options(config));
    } catch (const ConfigError& error) {
        throw question.ranks_are_known
            ? error
            : ConfigError(fmt::format("{}; finch plan assumed 1 rank per node: add --ranks-per-node R", error.what()));
    }
}

std::string table(const config::Config& config, const cluster::Layout& layout, const cluster::DeviceMap& devices) {
    constexpr std::size_t most = 64;
    std::string text = fmt::format("{}, {} of {}, {}\n", counted(std::ssize(layout.places), "rank"),
                                   counted(std::ssize(layout.leaders), "worker"), counted(config.workers.ranks, "rank"),
                                   counted(layout.islands, "island"));
    text += fmt::format("{:>6}  {:<20} {:>6} {:>8} {:>6} {:>7}  {}\n", "rank", "node", "local", "worker", "group",
                        "island", "device");
    for (std::size_t rank = 0; rank < std::min(most, layout.places.size()); ++rank) {
        const cluster::Place& place = layout.places[rank];
        text += fmt::format("{:>6}  {:<20} {:>6} {:>8} {:>6} {:>7}  {}\n", rank, place.node, place.local_rank,
                            place.worker, place.group_rank == 0 ? "leads" : std::to_string(place.group_rank),
                            place.island, devices.name(rank));
    }
    if (layout.places.size() > most) {
        text += fmt::format("  … and {} more ranks\n", layout.places.size() - most);
    }
    return text;
}

/// Returns a warning if finch evolve would refuse the run in the run directory. The job may have other options
/// (--fresh, --run) or another file system, so this is no error.
std::string refusal_text(const config::Config& config, const store::RunDirectory& directory,
                         const std::optional<std::string>& fingerprint) {
    try {
        if (const auto recovered = store::recover(directory, OnDamage::leave, store::Curves::leave)) {
            run::check_same_search(config, recovered->facts, directory, fingerprint);
        }
    } catch (const Error& error) {
        return fmt::format("warning: finch evolve refuses this run directory: {}\n", error.what());
    }
    return "";
}

/// Returns notes about the run directory, and about the results that search.reuse would find. `fingerprint`: nothing if
/// the data are not on this machine.
std::string runs_text(const config::Config& config, const std::optional<std::string>& fingerprint) {
    const store::RunDirectory directory(run::run_directory_of(config, {}));
    std::string text = refusal_text(config, directory, fingerprint);
    for (const std::string& note : run::read_other_runs(config, directory, true, fingerprint).notes) {
        text += note + "\n";
    }
    return text;
}

/// Returns a warning if the search needs joules, but this machine measures none. `uses_devices`: the joules are those
/// of GPUs, which this machine may lack.
std::string energy_text(const config::Config& config, bool uses_devices) {
    const std::string key = run::key_of_joules(config);
    if (key.empty() || uses_devices) {
        return "";
    }
    const energy::Found found = energy::open_meter({.watts = config.workers.watts});
    return found.meter ? ""
                       : fmt::format(
                             "warning: {} needs joules, but this machine cannot measure them ({}); finch evolve "
                             "refuses such nodes unless workers.watts: W is set, which estimates joules\n",
                             key, found.problem);
}

/// Returns the disk space of the run directory as text.
std::string space_text(const config::Config& config, const cluster::Layout& layout, const Networks& networks,
                       const data::Datasets* datasets) {
    return disk_text(config, disk_bytes(config, layout, networks, datasets), run::run_directory_of(config, {}));
}

/// Returns a path of the data that is not on this machine; nothing if all are here.
std::optional<std::string> absent_data(const data::Options& options) {
    std::error_code none;
    for (const std::string& path : data::paths_of(options)) {
        if (options.kind != data::Kind::generated && !path.empty() && !std::filesystem::exists(path, none)) {
            return path;
        }
    }
    return std::nullopt;
}

/// Returns the facts about images, networks, memory and disk space. `datasets`: null if the data are not on this
/// machine.
std::string training_text(const config::Config& config, const cluster::Layout& layout, bool uses_devices,
                          const data::Datasets* datasets) {
    const auto cpu = run::make_device(cluster::DeviceKind::cpu, cluster::no_device, 1);
    std::string text = uses_devices ? "" : precision_text(config, *cpu);
    const data::Options options = run::data_options(config);
    if (const std::optional<std::string> absent = absent_data(options)) {
        const std::string hint = path_hint(*absent);
        text += fmt::format("{}: {} is not here yet{}: images, classes and memory are not known\n",
                            hint.empty() ? "remark" : "warning", *absent, hint);
    }
    if (datasets == nullptr) {
        return text + runs_text(config, std::nullopt);
    }
    run::check_data(config, *datasets);
    const std::string reused = runs_text(config, datasets->fingerprint);
    const Networks networks = try_networks(config, datasets->training, *cpu);
    text += fmt::format("data: {}\n{}", run::data_text(config, *datasets), reused);
    for (const std::string& line : run::systems_lines(config, *datasets)) {
        text += line + "\n";
    }
    for (const std::string& warning : run::data_warnings(config, *datasets)) {
        text += fmt::format("warning: {}\n", warning);
    }
    text += fmt::format("networks: {} to {} parameters ({} of {} genomes tried give a network{})\n",
                        networks.fewest_parameters, networks.most_parameters, networks.possible, networks.tried,
                        networks.too_large > 0
                            ? fmt::format("; {} more break search.limits and are left out", networks.too_large)
                            : "");
    if (uses_devices) {
        const std::int64_t trainings = config.workers.slots * networks.training_bytes;
        return text +
               fmt::format("memory: at most {} MiB of each GPU, {} slot(s); that of the nodes is not known\n",
                           mebibytes(static_cast<double>(trainings)), config.workers.slots) +
               space_text(config, layout, networks, datasets);
    }
    return text + memory_text(config, node_memory(config, layout, networks, *datasets)) +
           pixels_text(options, datasets->training) + space_text(config, layout, networks, datasets);
}

}  // namespace

Question question_of(const PlanOptions& options, const config::Config& config, std::vector<std::string> ranks_here) {
    const auto environment = cluster::Environment::of_this_process();
    Question question{{}, options.gpus_per_node, options.ranks_per_node.has_value() || !options.nodes};
    if (!options.nodes && !options.ranks_per_node) {
        question.node_of_rank = cluster::ranks_of_allocation(environment);
        if (question.node_of_rank.empty()) {
            question.node_of_rank = std::move(ranks_here);
        }
        if (question.node_of_rank.empty()) {
            const int cpus = cluster::usable_cpus();
            const int workers = cpus / std::max(1, config.workers.threads) / config.workers.ranks;
            const int ranks = std::max(1, workers) * config.workers.ranks;
            question.node_of_rank.assign(static_cast<std::size_t>(ranks), cluster::host_name());
            fmt::print(
                "not in a Slurm allocation: this plan is for this machine ({} on its {}). For other machines: --nodes "
                "N "
                "--ranks-per-node R [--gpus-per-node G]\n",
                counted(std::ssize(question.node_of_rank), "rank"), counted(cpus, "core"));
        }
        if (question.gpus_per_node == 0) {
            constexpr long long most = 1024;
            const auto gpus = environment.number("SLURM_GPUS_ON_NODE").value_or(0);
            question.gpus_per_node = 0 <= gpus && gpus <= most ? static_cast<int>(gpus) : 0;
        }
        return question;
    }
    for (int node = 0; node < options.nodes.value_or(1); ++node) {
        question.node_of_rank.insert(question.node_of_rank.end(),
                                     static_cast<std::size_t>(options.ranks_per_node.value_or(1)),
                                     fmt::format("node{}", node + 1));
    }
    return question;
}

config::Config load_to_plan(const PlanOptions& options) {
    std::vector<std::string> notes;
    config::Config config = run::with_first_guesses(config::load(options.config, options.settings), {}, 0, notes);
    for (const std::string& note : notes) {
        fmt::print("{}\n", note);
    }
    run::check_search(config, std::nullopt);
    return config;
}

void print_command_notes(const evaluate::CommandLine& line) {
    const run::CommandNotes notes = run::command_notes(line);
    for (const std::string& remark : notes.remarks) {
        fmt::print("remark: {}\n", remark);
    }
    for (const std::string& warning : notes.warnings) {
        fmt::print("warning: {}\n", warning);
    }
}

void print_plan(const config::Config& config, const Question& question, const data::Datasets* datasets) {
    const cluster::Layout layout = layout_of(config, question);
    const cluster::DeviceMap devices = map_devices(config, layout, question.gpus_per_node);
    std::string text = table(config, layout, devices);
    text += config.trains()
                ? training_text(config, layout, devices.uses_devices(), datasets)
                : memory_text(config, node_memory(config, layout, {}, {})) + space_text(config, layout, {}, nullptr);
    text += budget_text(config.budget, config.measure) + energy_text(config, devices.uses_devices());
    for (const auto* warnings : {&layout.warnings, &devices.warnings}) {
        for (const std::string& warning : *warnings) {
            text += "warning: " + warning + "\n";
        }
    }
    fmt::print("{}the run directory would be {}\n", text, run::run_directory_of(config, {}).string());
}

int plan(const PlanOptions& options) {
    const config::Config config = load_to_plan(options);
    if (const auto* const command = std::get_if<config::CommandObjective>(&config.objective)) {
        const auto prepared = run::prepare_programs(config, evaluate::read_templates(*command));
        evaluate::check_program(prepared->line.program());
        print_command_notes(prepared->line);
        fmt::print("{}", runs_text(config, prepared->fingerprint));
    } else if (!config.trains()) {
        fmt::print("{}", runs_text(config, ""));
    }
    const Question question = question_of(options, config);
    std::optional<data::Datasets> datasets;
    if (config.trains()) {
        const data::Options data = run::data_options(config);
        if (!absent_data(data)) {
            datasets = data::load(data, config.seed);
        }
    }
    print_plan(config, question, datasets ? &*datasets : nullptr);
    return exit_done;
}

}  // namespace finch::app
