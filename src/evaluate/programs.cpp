#include "finch/evaluate/programs.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/copy_folder.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/evaluate/report_line.hpp"
#include "finch/search/outcomes.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace finch::evaluate {
namespace {

namespace fs = std::filesystem;

/// Writes a new file, and first removes any file or link that a program created at `path`. Throws
/// std::filesystem::filesystem_error.
void write_file(const fs::path& path, const std::string& text) {
    const FileDescriptor file = make_file(path);
    if (!file || !write_all(file.get(), std::as_bytes(std::span(text)))) {
        throw fs::filesystem_error("cannot be written", path, std::error_code(errno, std::generic_category()));
    }
}

Status status_after(const fs::filesystem_error& error) {
    return is_storage_failure(error.code().value()) ? Status::storage : Status::failed;
}

constexpr std::size_t lines_of_problem = 10;
constexpr std::size_t bytes_of_problem = 1500;

/// Returns the final text of a line on a terminal: the part after the last carriage return, without escape sequences.
std::string shown(const std::string& line) {
    const std::size_t end = line.find_last_not_of("\r ") + 1;  // npos + 1 is 0
    const std::size_t begin = line.substr(0, end).rfind('\r') + 1;
    return without_escapes(line.substr(begin, end - begin));
}

/// True for a row of dashes, equal signs and the like, as mpirun prints around its messages.
bool is_rule(const std::string& line) {
    return !line.empty() && line.find_first_not_of("-=_*#+~ \t") == std::string::npos;
}

}  // namespace

Programs::Programs(const config::Config& config, const CommandLine& line, const comm::Group& group,
                   process::Launcher& launcher, Place place)
    : objective_(std::get<config::CommandObjective>(config.objective)),
      line_(line),
      group_(group),
      launcher_(launcher),
      run_(std::move(place.run)),
      environment_(group, place.ranks, objective_, std::max(1, place.threads / config.workers.slots)),
      slots_(static_cast<std::size_t>(config.workers.slots)) {}

bool Programs::starts_here() const {
    return group_.is_leader() || objective_.launch == config::Launch::ranks;
}

std::string Programs::name_of(const std::string& what) const {
    return group_.size() > 1 ? fmt::format("{}-{}", what, group_.rank()) : what;
}

void Programs::prepare_folder(const search::Individual& individual, const CommandLine::Paths& paths) const {
    if (!objective_.persistent || !objective_.files.empty()) {
        fs::create_directories(paths.checkpoints());
    } else {
        fs::create_directories(run_.evaluations());
    }
    if (group_.is_leader()) {
        for (const auto& [name, text] : line_.files(individual, paths)) {
            fs::create_directories((paths.folder / name).parent_path());
            write_file(paths.folder / name, text);
        }
        if (line_.uses("hostfile")) {
            write_file(paths.hostfile, environment_.hostfile());
        }
    }
}

CommandLine::Paths Programs::paths_of(search::Id id, bool resumes) const {
    return {run_.root(), folder_of(id), resumes, environment_.hosts(), file_of(id, "hosts")};
}

process::Program Programs::program_of(const Order& order, const search::Individual& individual,
                                      const CommandLine::Paths& paths) const {
    return {.arguments = line_.arguments(individual, paths),
            .environment = environment_.with(line_.variables(individual, paths), order.port),
            .folder = objective_.persistent ? run_.evaluations().string() : paths.folder.string(),
            .cpus = environment_.cpus(),
            .output_bytes = static_cast<std::size_t>(objective_.output_bytes)};
}

void Programs::start(const Order& order, std::int32_t epochs) {
    Slot& slot = slots_.at(order.slot);
    const search::Individual& individual = order.individual;
    const CommandLine::Paths paths = paths_of(individual.id, order.resumes);
    slot = Slot{.child = std::move(slot.child),
                .id = individual.id,
                .runs = starts_here(),
                .epochs = static_cast<double>(epochs),
                .printed = steady_seconds()};
    try {
        if (slot.runs) {
            prepare_folder(individual, paths);
        }
    } catch (const fs::filesystem_error& error) {
        fail(slot, error.what(), status_after(error));
    }
    if (!objective_.files.empty() || line_.uses("hostfile")) {
        static_cast<void>(group_.maximum(0));  // wait for the files of the leader, which the programs of all ranks read
    }
    if (slot.runs) {
        start_child(slot, order, individual, paths);
    }
}

void Programs::start_child(Slot& slot, const Order& order, const search::Individual& individual,
                           const CommandLine::Paths& paths) {
    try {
        if (!objective_.persistent || !slot.child || slot.child->ended()) {
            slot.child.reset();
            slot.child.emplace(launcher_.start(program_of(order, individual, paths)));
        } else {
            static_cast<void>(slot.child->take_lines());  // discard lines printed after 'finch done'
        }
        slot.child->write(line_.json(individual, paths));
        if (!objective_.persistent && !objective_.interactive) {
            slot.child->close_input();
        }
    } catch (const fs::filesystem_error& error) {
        fail(slot, error.what(), status_after(error));
    }
}

void Programs::fail(Slot& slot, const std::string& why, Status status) const {
    slot.runs = false;
    slot.status = status;
    slot.problem = group_.size() > 1 ? fmt::format("rank {}: {}", group_.rank(), why) : why;
}

void Programs::take_line(Slot& slot, ReportLine line) const {
    slot.questions += line.kind == ReportLine::Kind::question ? 1 : 0;
    if (line.kind == ReportLine::Kind::done) {
        const bool is_of_other = !line.id.empty() && line.id != to_text(slot.id);
        slot.runs = !objective_.persistent || is_of_other;
    } else if (group_.is_leader()) {
        slot.epochs = line.value("epoch").value_or(slot.epochs + 1);
        slot.reports.push_back(std::move(line));
    }
}

/// Reads the lines that the program printed, and checks whether the program has ended.
void Programs::look(Slot& slot) const {
    if (!slot.runs) {
        return;
    }
    const std::optional<process::Ended> ended = slot.child->ended();  // before take_lines(), so that no line is lost
    if (const std::size_t bytes = slot.child->bytes(); std::exchange(slot.bytes, bytes) != bytes) {
        slot.printed = steady_seconds();
    }
    for (const std::string& text : slot.child->take_lines()) {
        std::optional<ReportLine> line = read_report_line(text);
        if (line && slot.runs) {
            take_line(slot, std::move(*line));
        }
    }
    if (ended && slot.runs) {
        judge(slot, *ended);
    }
}

void Programs::judge(Slot& slot, const process::Ended& ended) const {
    slot.ended_at = slot.child->ended_at();
    const bool has_problem = !ended.problem.empty();
    const std::string errors = slot.child->errors();
    const bool is_good = ended.code == 0 && ended.signal == 0 && ended.problem.empty();
    // Processes that outlive the program are a fault only if the program has not reported all epochs: they may be the
    // training. Otherwise the processes are only helpers.
    const bool is_cut_off =
        ended.cut_off > 0 && group_.is_leader() && slot.epochs < static_cast<double>(objective_.epochs);
    if (is_good && !is_cut_off && !objective_.persistent) {
        slot.last_errors = last_lines(errors);
        slot.runs = false;
        return;
    }
    slot.signal = slot.was_told ? 0 : signal_of_stop(ended);
    const bool port_is_taken = is_port_taken(errors) || is_port_taken(slot.child->output());
    const std::string how = is_good && objective_.persistent ? "a persistent program ended before it said 'finch done'"
                                                             : how_it_ended(ended);
    const std::string said =
        last_lines(errors.empty() && (!is_good || objective_.persistent) ? slot.child->output() : errors);
    fail(slot, how + (said.empty() ? "" : ": " + said),
         has_problem && ended.code == process::exit_of_node ? Status::storage
         : has_problem && ended.code == 127                 ? Status::not_started
         : port_is_taken                                    ? Status::port_taken
                                                            : Status::failed);
    if (slot.was_told && !port_is_taken) {
        slot.problem.clear();  // Finch ended it: no fault of the program
    }
}

/// Gives the n-th answer to the n-th question, so that all ranks of a program continue or stop at the same question.
void Programs::answer(Slot& slot, const Order::Answers& answers) {
    for (; slot.runs && slot.answered < std::min(slot.questions, answers.decided); ++slot.answered) {
        slot.child->write(slot.answered < answers.stop_from ? "go on\n" : "stop\n");
    }
}

/// Writes the program's output to files next to the evaluation's folder.
void Programs::keep_output(const Slot& slot) const {
    if (objective_.persistent || objective_.keep == config::Keep::none) {
        return;
    }
    for (const auto& [what, text] :
         {std::pair(name_of("output"), slot.child->output()), std::pair(name_of("errors"), slot.child->errors())}) {
        try {
            if (!text.empty()) {
                write_file(run_.evaluation_file(slot.id, what), text);
            }
        } catch (const fs::filesystem_error& error) {
            spdlog::warn("the output of {} is lost: {}", to_text(slot.id), error.what());
        }
    }
}

void Programs::remove_files(search::Id id) const {
    std::error_code failed;
    fs::remove_all(folder_of(id), failed);
    if (failed) {
        spdlog::warn("{} could not be removed: {}", folder_of(id).string(), failed.message());
    }
    fs::remove(file_of(id, "reports"), failed);
    remove_folder(file_of(id, std::string(config::parent_suffix)));
    if (line_.uses("hostfile")) {
        fs::remove(file_of(id, "hosts"), failed);
    }
    for (const char* what : {"output", "errors"}) {
        fs::remove(file_of(id, what), failed);
        for (int rank = 0; rank < group_.size() && group_.size() > 1; ++rank) {
            fs::remove(file_of(id, fmt::format("{}-{}", what, rank)), failed);
        }
    }
    fs::remove(folder_of(id).parent_path(), failed);  // only if it is empty
}

void Programs::release(std::uint32_t number, bool ends_program) {
    Slot& slot = slots_.at(number);
    if (slot.child) {
        keep_output(slot);
        if (!objective_.persistent || ends_program) {
            slot.child.reset();
        }
    }
    gather_ends(slot);
    slot.reports.clear();
}

/// Reports the error text of the rank that failed first: the other ranks may have failed because of that failure.
void Programs::gather_ends(const Slot& slot) {
    problem_.clear();
    last_errors_.clear();
    seconds_since_end_ = std::numeric_limits<double>::infinity();
    double first = std::numeric_limits<double>::infinity();
    const double since_end = slot.ended_at > 0 ? unix_seconds() - slot.ended_at : 0;
    const std::string mine = to_message(RankEnd{slot.ended_at, since_end, slot.problem, slot.last_errors});
    for (const std::string& message : comm::gather_all(group_.get(), mine)) {
        RankEnd on_rank = from_message<RankEnd>(message);
        if (!on_rank.problem.empty() && on_rank.ended_at < first) {
            first = on_rank.ended_at;
            problem_ = std::move(on_rank.problem);
        }
        seconds_since_end_ = std::min(seconds_since_end_, on_rank.seconds_since_end);
        last_errors_ = last_errors_.empty() ? on_rank.last_errors : last_errors_;
    }
}

Answer Programs::look(std::uint32_t number, const Order::Answers& answers) {
    Slot& slot = slots_.at(number);
    look(slot);
    answer(slot, answers);
    const auto any = group_.maximum({static_cast<std::int64_t>(slot.runs), static_cast<std::int64_t>(slot.signal)});
    return {any[0] != 0, agree(group_, slot.status), any[1] != 0};
}

void Programs::signal() {
    for (Slot& slot : slots_) {
        if (slot.runs) {
            slot.child->signal(SIGUSR2);
        }
    }
}

void Programs::end(std::uint32_t number, double grace_seconds) {
    Slot& slot = slots_.at(number);
    if (slot.runs) {
        slot.was_told = true;
        slot.child->end(grace_seconds);
    }
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

std::string last_lines(const std::string& output) {
    const std::string text(search::up_to_reason(output, lines_of_problem));
    std::string last;
    std::size_t end = text.find_last_not_of("\r\n ") + 1;  // npos + 1 is 0
    for (std::size_t lines = 0; end > 0 && lines < lines_of_problem && last.size() < bytes_of_problem;) {
        const std::size_t begin = text.rfind('\n', end - 1) + 1;
        const std::string line = shown(text.substr(begin, end - begin));
        end = begin > 0 ? begin - 1 : 0;
        if (!is_rule(line) && !(line.empty() && last.empty())) {
            last = line + (lines > 0 ? "\n" : "") + last;
            ++lines;
        }
    }
    return printable(std::string_view(last).substr(last.size() - std::min(last.size(), bytes_of_problem)));
}

std::string how_it_ended(const process::Ended& ended) {
    if (!ended.problem.empty()) {
        return ended.problem;
    }
    if (ended.signal != 0) {
        return fmt::format("ended by signal {} ({}{})", ended.signal, ::strsignal(ended.signal),
                           ended.signal == SIGKILL ? ", as the kernel does where memory runs out" : "");
    }
    if (ended.code == 0 && ended.cut_off > 0) {
        return fmt::format("it ended while {} of its processes still ran (a \"&\" without \"wait\"?)", ended.cut_off);
    }
    return fmt::format("exit code {}", ended.code);
}

bool is_port_taken(const std::string& said) {
    return said.find("EADDRINUSE") != std::string::npos || said.find("ddress already in use") != std::string::npos ||
           said.find("Errno 98]") != std::string::npos;
}

int signal_of_stop(const process::Ended& ended) {
    for (const int signal : {ended.signal, ended.code - 128}) {  // a shell returns 128 + the signal of its child
        if (cluster::is_stop_signal(signal)) {
            return signal;
        }
    }
    return 0;
}

}  // namespace finch::evaluate
