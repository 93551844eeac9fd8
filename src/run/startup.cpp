#include "finch/run/startup.hpp"

#include "finch/backend/device.hpp"
#include "finch/base/bytes.hpp"
#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/version.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/comm/node_memory.hpp"
#include "finch/comm/phase.hpp"
#include "finch/config/trial_genomes.hpp"
#include "finch/nn/initialization.hpp"
#include "finch/run/on_every_rank.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

namespace finch::run {

double start_seconds() {
    constexpr long long standard = 120;
    constexpr long long most = 1LL << 20U;
    const auto seconds = cluster::Environment::of_this_process().number("FINCH_START_SECONDS").value_or(standard);
    return static_cast<double>(1 <= seconds && seconds <= most ? seconds : standard);
}

namespace {

/// The work for which other ranks wait in a phase:
/// - `none`: no long work
/// - `files`: one rank works with files, for up to half an hour if FINCH_START_SECONDS is not set
/// - `handing_out`: world rank 0 distributes data; a million individuals take some seconds
enum class Work { none, files, handing_out };

struct PhaseFacts {
    std::string_view words;
    Work work;
};
constexpr std::array phase_facts{
    PhaseFacts{"the roll call", Work::none},
    PhaseFacts{"reading the configuration", Work::files},
    PhaseFacts{"forming the groups", Work::none},
    PhaseFacts{"opening the devices and reading the data", Work::files},
    PhaseFacts{"opening the run directory", Work::files},
    PhaseFacts{"handing out the run", Work::handing_out},
    PhaseFacts{"recording the start", Work::files},
    PhaseFacts{"the roll call before the search", Work::none},
    PhaseFacts{"handing out the results of other runs", Work::handing_out},
    PhaseFacts{"the end of the search", Work::files},
    PhaseFacts{"the end of the run", Work::files},
};
static_assert(phase_facts.size() == static_cast<std::size_t>(Phase::end_of_run) + 1);

double deadline_of(Work work, double seconds_to_answer) {
    return work == Work::files         ? 15 * start_seconds()
           : work == Work::handing_out ? 5 * start_seconds()
                                       : seconds_to_answer;
}

/// The parsed value of FINCH_TEST_HANG: "RANK:PHASE:SECONDS".
struct HangTest {
    std::string rank;
    std::string phase;
    double seconds = 0;
};

std::optional<HangTest> hang_test(const std::string& phase) {
    const auto text = cluster::Environment::of_this_process().text("FINCH_TEST_HANG");
    if (!text) {
        return std::nullopt;
    }
    const std::size_t first = text->find(':');
    const std::size_t last = text->rfind(':');
    HangTest test{text->substr(0, first), text->substr(first + 1, last - first - 1), std::stod(text->substr(last + 1))};
    return phase.starts_with(test.phase) ? std::optional(test) : std::nullopt;
}

}  // namespace

double hang_for_test(const std::string& phase, double seconds) {
    const auto test = hang_test(phase);
    if (!test) {
        return seconds;
    }
    const auto rank = cluster::Environment::of_this_process().text("OMPI_COMM_WORLD_RANK");
    if (rank && *rank == test->rank) {
        fmt::print(stderr, "finch: rank {} hangs at {}\n", *rank, phase);
        while (true) {
            std::this_thread::sleep_for(std::chrono::seconds(1));
        }
    }
    return test->seconds;
}

void barrier_with_deadline(const comm::Session& session) {
    begin_phase(session, Phase::roll_call, start_seconds() / 4);  // all ranks have left MPI_Init
    const auto environment = cluster::Environment::of_this_process();
    comm::check_start(MPI_COMM_WORLD, cluster::nodes_of_ranks(environment, session.world_size()));
}

void begin_phase(const comm::Session& session, Phase phase, double seconds_to_answer) {
    constexpr double seconds_to_tell = 30;  // a wait in MPI reports missing ranks before this alarm
    const PhaseFacts& facts = phase_facts.at(static_cast<std::size_t>(phase));
    const std::string what(facts.words);
    const double seconds = hang_for_test(what, deadline_of(facts.work, seconds_to_answer));
    comm::begin_phase(what, seconds);
    cluster::watch(fmt::format("finch: rank {} on {}: {} did not end within {} s", session.world_rank(),
                               cluster::host_name(), what, seconds + seconds_to_tell),
                   seconds + seconds_to_tell);
}

void end_phases() {
    comm::end_phase();
    cluster::unwatch();
}

bool stop_was_asked() {
    int request = static_cast<int>(cluster::stop_request());
    MPI_Request reduction = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Iallreduce(MPI_IN_PLACE, &request, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &reduction));
    comm::wait_for(reduction);
    cluster::request_stop(static_cast<StopRequest>(request));
    return cluster::stop_request() != StopRequest::none;
}

cluster::LayoutOptions layout_options(const config::Config& config) {
    return {config.workers.ranks, config.workers.islands, config.workers.island_sizes};
}

int Placement::nodes() const {
    return static_cast<int>(std::set<std::string>(node_of_rank.begin(), node_of_rank.end()).size());
}

std::string Placement::node_list() const {
    constexpr std::size_t most = 64;
    const std::set<std::string> all(node_of_rank.begin(), node_of_rank.end());
    std::vector<std::string> names(all.begin(), all.end());
    names.resize(std::min(most, names.size()));
    return join(names, ",") + (all.size() > most ? ",…" : "");
}

Placement place_ranks(const comm::Session& session, const config::Config& config, const cluster::Slurm& slurm) {
    Placement placement;
    placement.node_of_rank = comm::names_of_nodes(MPI_COMM_WORLD);
    placement.layout = cluster::make_layout(placement.node_of_rank, layout_options(config));
    // Slurm gives each task its own CPUs. Without Slurm, the ranks of a node share the usable CPUs, and they always
    // share a quota of CPU time.
    const int usable = cluster::usable_cpus();
    const bool has_quota = usable < static_cast<int>(cluster::own_cpus().size());
    const int sharing = slurm.cpus_per_task && !has_quota ? 1 : placement.mine(session.world_rank()).local_ranks;
    const int own = std::min(usable / sharing, static_cast<int>(slurm.cpus_per_task.value_or(usable)));
    placement.threads = config.workers.threads > 0 ? config.workers.threads : std::max(1, own);
    // mpirun passes on SLURM_PROCID and SLURM_LOCALID of the batch script, which are then 0 on all ranks.
    const bool is_of_this_rank = cluster::Environment::of_this_process().number("SLURM_PROCID") == session.world_rank();
    if (is_of_this_rank && slurm.localid && *slurm.localid != placement.mine(session.world_rank()).local_rank) {
        spdlog::warn("Slurm says that rank {} is number {} of its node; counting ranks by node gives {}",
                     session.world_rank(), *slurm.localid, placement.mine(session.world_rank()).local_rank);
    }
    return placement;
}

void check_first_weights(const config::Config& config, const data::Datasets& datasets) {
    const nn::SampleShape sample{datasets.training.height, datasets.training.width, datasets.training.channels};
    std::string mine = "none";
    for (const train::Recipe& recipe : config::trial_recipes(config)) {
        try {
            const nn::ModelPlan plan = nn::plan_model(recipe.model, sample, datasets.training.outputs(), 1);
            const nn::ModelState first = nn::initial_state(plan, config.seed, 0);
            mine = fmt::format("{:08x}", crc32c(std::as_bytes(std::span(first.parameters))));
            break;
        } catch (const ConfigError&) {
            continue;  // not a possible network
        }
    }
    const std::vector<std::string> all = comm::gather_all(MPI_COMM_WORLD, mine);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (all[rank] != all[0]) {
            throw Error(fmt::format(
                "the first weights of rank {} differ from those of rank 0 ({} and {}): do all nodes run the "
                "same program?",
                rank, all[rank], all[0]));
        }
    }
}

void log_summary(const comm::Session& session, const config::Config& config, const Placement& placement,
                 const std::string& device, cluster::AllReduceKind communicator) {
    const auto visible = cluster::Environment::of_this_process().text("CUDA_VISIBLE_DEVICES");
    const cluster::Place& place = placement.mine(session.world_rank());
    const std::string mine = fmt::format(
        "rank {}: {}, worker {} ({}), island {}, {}, {}, CUDA_VISIBLE_DEVICES {}", session.world_rank(), place.node,
        place.worker, place.group_rank == 0 ? "leads" : fmt::format("rank {}", place.group_rank), place.island, device,
        counted(placement.threads, "thread"), visible.value_or("unset"));
    const std::vector<std::string> lines = comm::gather_all(MPI_COMM_WORLD, mine);
    if (session.world_rank() != 0) {
        return;
    }
    spdlog::info("Finch {}: {} on {}, {} of {}, {}, device {}, communicator {}", program_version(),
                 counted(session.world_size(), "rank"), counted(placement.nodes(), "node"),
                 counted(std::ssize(placement.layout.leaders), "worker"), counted(config.workers.ranks, "rank"),
                 counted(placement.layout.islands, "island"), device, word(communicator));
    constexpr std::size_t most = 64;
    for (std::size_t i = 0; i < std::min(most, lines.size()); ++i) {
        spdlog::info("  {}", lines[i]);
    }
    if (lines.size() > most) {
        spdlog::info("  … and {} more ranks", lines.size() - most);
    }
    for (const std::string& warning : placement.layout.warnings) {
        spdlog::warn("{}", warning);
    }
}

}  // namespace finch::run
