#include "finch/evaluate/programs.hpp"

#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/evaluate/order.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <set>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace finch::evaluate {
namespace {

namespace fs = std::filesystem;

constexpr double seconds_to_first_order = 600;  // the leader reads the run first
constexpr std::size_t lines_of_problem = 10;
constexpr std::size_t bytes_of_problem = 1500;

/// Of the parent's MPI and of its place in Slurm's step: a program may be an MPI program itself, and frameworks take
/// SLURM_PROCID for the rank.
bool is_of_parent(const std::string& name) {
    static constexpr std::array<std::string_view, 20> beginnings = {
        "OMPI_",        "PMIX_",        "PMI_",          "PRTE_",      "ORTE_",        "OPAL_",         "MPI_LOCAL",
        "HYDRA_",       "MV2_COMM",     "HWLOC_XMLFILE", "SLURM_PMI",  "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID",
        "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP",    "SLURM_TASK", "SLURM_GTIDS",  "FINCH_TEST_"};
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
    while (fs::exists(fmt::format("/dev/nvidia{}", devices.size()), none)) {
        devices.push_back(std::to_string(devices.size()));
    }
    return devices;
}

/// The last lines of what a program wrote.
std::string last_lines(const std::string& text) {
    std::size_t begin = text.size();
    while (begin > 0 && (text[begin - 1] == '\n' || text[begin - 1] == ' ')) {
        --begin;
    }
    const std::size_t end = begin;
    for (std::size_t lines = 0; begin > 0 && end - begin < bytes_of_problem; --begin) {
        if (text[begin - 1] == '\n' && ++lines == lines_of_problem) {
            break;
        }
    }
    return text.substr(begin, end - begin);
}

std::string how_it_ended(const process::Ended& ended) {
    if (!ended.problem.empty()) {
        return ended.problem;
    }
    if (ended.signal != 0) {
        return fmt::format("ended by signal {} ({})", ended.signal, ::strsignal(ended.signal));
    }
    return fmt::format("exit code {}", ended.code);
}

void write_file(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    if (!(file << text << std::flush)) {
        throw StorageError(fmt::format("{} cannot be written", path.string()));
    }
}

}  // namespace

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

Programs::Programs(const config::Config& config, const CommandLine& line, const comm::Group& group,
                   process::Launcher& launcher, Place place)
    : config_(config),
      objective_(std::get<config::CommandObjective>(config.objective)),
      line_(line),
      group_(group),
      launcher_(launcher),
      place_(std::move(place)),
      slots_(static_cast<std::size_t>(config.workers.slots)) {
    const auto environment = cluster::Environment::of_this_process();
    const std::vector<std::string> visible = visible_devices(environment);
    const auto self = static_cast<std::size_t>(group.rank());
    const std::size_t mine = visible.empty() ? 0 : static_cast<std::size_t>(place_.local_ranks[self]) % visible.size();
    std::vector<std::string> devices;
    const std::vector<std::string> all = comm::gather_all(group.get(), visible.empty() ? "" : visible[mine]);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const bool is_new = std::find(devices.begin(), devices.end(), all[rank]) == devices.end();
        if (place_.nodes[rank] == place_.nodes[self] && !all[rank].empty() && is_new) {
            devices.push_back(all[rank]);
        }
    }
    devices_ = fmt::format("{}", fmt::join(devices, ","));
    for (const auto& [name, value] : environment.all()) {
        if (!is_of_parent(name) && !name.starts_with("FINCH_GENE_")) {
            base_environment_.push_back(name + "=" + value);
        }
    }
}

bool Programs::starts_here() const {
    return group_.is_leader() || objective_.launch == config::Launch::ranks;
}

/// The later one of two equal names counts for no program, so names are given once.
std::vector<std::string> Programs::environment_of(const ProgramOrder& order,
                                                  const search::Individual& individual) const {
    const auto self = static_cast<std::size_t>(group_.rank());
    const std::string& node = place_.nodes[self];
    const auto begin = place_.nodes.begin();
    const bool is_leaders = objective_.launch == config::Launch::leader;
    const auto on_node = [&](auto end) { return std::count(begin, end, node); };
    const bool is_one_node = std::set<std::string>(begin, place_.nodes.end()).size() == 1;
    std::map<std::string, std::string> variables =
        line_.variables(individual, {place_.run.root(), folder_of(individual.id), order.resumes});
    variables["RANK"] = std::to_string(is_leaders ? 0 : group_.rank());
    variables["WORLD_SIZE"] = std::to_string(is_leaders ? 1 : group_.size());
    variables["LOCAL_RANK"] = std::to_string(is_leaders ? 0 : on_node(begin + group_.rank()));
    variables["LOCAL_WORLD_SIZE"] = std::to_string(is_leaders ? 1 : on_node(place_.nodes.end()));
    variables["MASTER_ADDR"] = is_one_node ? "127.0.0.1" : place_.nodes.front();
    variables["MASTER_PORT"] = std::to_string(order.port);
    if (!devices_.empty()) {
        variables["CUDA_VISIBLE_DEVICES"] = devices_;
    }
    if (!cluster::Environment::of_this_process().text("OMP_NUM_THREADS")) {
        const int threads = place_.threads / config_.workers.slots;
        variables["OMP_NUM_THREADS"] = std::to_string(std::max(1, threads));
    }
    std::vector<std::string> environment;
    for (const std::string& entry : base_environment_) {
        if (!variables.contains(entry.substr(0, entry.find('=')))) {
            environment.push_back(entry);
        }
    }
    for (const auto& [name, value] : variables) {
        environment.push_back(name + "=" + value);
    }
    return environment;
}

void Programs::start(const ProgramOrder& order) {
    Slot& slot = slots_.at(order.slot);
    ByteReader reader(std::as_bytes(std::span(order.individual)));
    const search::Individual individual = search::read_individual(reader);
    const CommandLine::Paths paths{place_.run.root(), folder_of(individual.id), order.resumes};
    slot.id = individual.id;
    slot.failed = slot.was_told = false;
    slot.signal = 0;
    slot.questions = slot.answered = 0;
    slot.reports.clear();
    slot.problem.clear();
    slot.runs = starts_here();
    if (!slot.runs) {
        return;
    }
    const bool goes_on = objective_.persistent && slot.child && !slot.child->ended();
    if (!objective_.persistent || !objective_.files.empty()) {
        fs::create_directories(paths.folder / "checkpoint");
    }
    if (group_.is_leader()) {
        for (const auto& [name, text] : line_.files(individual, paths)) {
            write_file(paths.folder / name, text);
        }
    }
    if (!goes_on) {
        if (objective_.persistent) {
            fs::create_directories(place_.run.evaluations());
        }
        slot.child.emplace(launcher_.start(
            {.arguments = line_.arguments(individual, paths),
             .environment = environment_of(order, individual),
             .folder = objective_.persistent ? place_.run.evaluations().string() : paths.folder.string(),
             .output_bytes = static_cast<std::size_t>(objective_.output_bytes)}));
    }
    slot.child->write(line_.json(individual, paths));
    if (!objective_.persistent && !objective_.interactive) {
        slot.child->close_input();
    }
}

/// Takes what the program said, and how it ended.
void Programs::look(Slot& slot) {
    if (!slot.runs) {
        return;
    }
    const std::optional<process::Ended> ended = slot.child->ended();  // before its last lines are taken
    for (const std::string& text : slot.child->take_lines()) {
        std::optional<ReportLine> line = read_report_line(text);
        if (!line) {
            continue;
        }
        slot.questions += line->kind == ReportLine::Kind::question ? 1 : 0;
        if (line->kind == ReportLine::Kind::done && objective_.persistent) {
            slot.runs = false;
        }
        if (group_.is_leader()) {
            slot.reports.push_back(std::move(*line));
        }
    }
    if (ended && slot.runs) {
        judge(slot, *ended);
    }
}

void Programs::judge(Slot& slot, const process::Ended& ended) {
    slot.runs = false;
    slot.signal = ended.signal;
    const bool went_well = ended == process::Ended{} && !objective_.persistent;
    slot.failed = !went_well;
    if (!went_well && !slot.was_told) {
        const std::string said = last_lines(slot.child->errors().empty() ? slot.child->output() : slot.child->errors());
        slot.problem = fmt::format("{}{}{}",
                                   objective_.persistent && ended == process::Ended{}
                                       ? "a persistent program ended before it said 'finch done'"
                                       : how_it_ended(ended),
                                   said.empty() ? "" : ": ", said);
        if (group_.size() > 1) {
            slot.problem = fmt::format("rank {}: {}", group_.rank(), slot.problem);
        }
    }
}

/// The n-th answer goes to the n-th question, so that all ranks do the same after it.
void Programs::answer(Slot& slot, const std::vector<std::uint8_t>& answers) {
    while (slot.runs && slot.answered < std::min(slot.questions, answers.size())) {
        slot.child->write(answers[slot.answered++] != 0 ? "stop\n" : "go on\n");
    }
}

/// What the program wrote stays beside what else is in its folder.
void Programs::keep_output(const Slot& slot) const {
    const std::string suffix = group_.size() > 1 ? fmt::format("-{}", group_.rank()) : "";
    const fs::path folder = folder_of(slot.id);
    if (objective_.persistent || objective_.keep == config::Keep::none) {
        return;
    }
    if (const std::string text = slot.child->output(); !text.empty()) {
        write_file(folder / ("output" + suffix + ".txt"), text);
    }
    if (const std::string text = slot.child->errors(); !text.empty()) {
        write_file(folder / ("errors" + suffix + ".txt"), text);
    }
}

void Programs::release(Slot& slot) {
    if (slot.child) {
        keep_output(slot);
        if (!objective_.persistent || slot.child->ended()) {
            slot.child.reset();
        }
    }
    problem_.clear();
    for (const std::string& text : comm::gather_all(group_.get(), slot.problem)) {
        problem_ = problem_.empty() ? text : problem_;
    }
    slot.reports.clear();
}

std::vector<Programs::Standing> Programs::obey(const ProgramOrder& order) {
    Slot& slot = slots_.at(order.slot);
    std::vector<Standing> standings;
    switch (order.kind) {
        case ProgramOrder::Kind::start:
            start(order);
            break;
        case ProgramOrder::Kind::look:
            for (Slot& one : slots_) {
                look(one);
                if (&one == &slot) {
                    answer(one, order.answers);
                }
                const auto all =
                    group_.maximum({static_cast<std::int64_t>(one.runs), static_cast<std::int64_t>(one.failed)});
                standings.push_back({all[0] != 0, all[1] != 0});
            }
            break;
        case ProgramOrder::Kind::signal:
            for (Slot& one : slots_) {
                if (one.runs) {
                    one.child->signal(SIGUSR2);
                }
            }
            break;
        case ProgramOrder::Kind::end:
            if (slot.runs) {
                slot.was_told = true;
                slot.child->end(order.grace_seconds);
            }
            break;
        case ProgramOrder::Kind::release:
            release(slot);
            break;
        case ProgramOrder::Kind::wait:
            static_cast<void>(agree(group_, Status::running));
            break;
        case ProgramOrder::Kind::dismiss:
            slots_.clear();
            break;
    }
    return standings;
}

std::vector<Programs::Standing> Programs::command(const ProgramOrder& order) {
    const std::string message = to_message(order);
    const auto view = std::as_bytes(std::span(message));
    Bytes bytes(view.begin(), view.end());
    group_.broadcast(bytes);
    return obey(order);
}

void Programs::follow() {
    ProgramOrder order{.kind = ProgramOrder::Kind::wait, .seconds_to_next = seconds_to_first_order};
    do {
        Bytes bytes;
        group_.broadcast(bytes, std::max(seconds_of_silence, order.seconds_to_next));
        order = from_message<ProgramOrder>({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        obey(order);
    } while (order.kind != ProgramOrder::Kind::dismiss);
}

std::vector<ReportLine> Programs::take_reports(std::uint32_t slot) {
    return std::exchange(slots_.at(slot).reports, {});
}

bool Programs::wait(double seconds) {
    std::vector<process::Child*> children;
    for (Slot& slot : slots_) {
        if (slot.runs) {
            children.push_back(&*slot.child);
        }
    }
    return process::wait_for_any(children, seconds);
}

std::size_t Programs::open_questions(std::uint32_t slot) const {
    return slots_.at(slot).questions - slots_.at(slot).answered;
}

bool Programs::was_signalled(std::uint32_t slot) const {
    const Slot& one = slots_.at(slot);
    return !one.was_told && (one.signal == SIGTERM || one.signal == SIGUSR2 || one.signal == SIGINT);
}

}  // namespace finch::evaluate
