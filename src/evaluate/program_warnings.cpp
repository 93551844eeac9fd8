#include "finch/evaluate/program_warnings.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/environment.hpp"

namespace finch::evaluate {
namespace {

constexpr double shortest_late = 1;            // s; a shorter program cannot be pruned anyway
constexpr double share_of_late_reports = 0.1;  // of a program's time, at its end

/// Returns how many seconds of waiting or silence lead to a warning. FINCH_TEST_SILENCE shortens the time in tests.
double seconds_to_warn() {
    constexpr long long standard = 60;
    const auto seconds = cluster::Environment::of_this_process().number("FINCH_TEST_SILENCE");
    return static_cast<double>(seconds.value_or(standard));
}

}  // namespace

ProgramWarnings::ProgramWarnings(bool may_prune) : may_prune_(may_prune), seconds_(seconds_to_warn()) {}

void ProgramWarnings::ranks_wait(search::Id id, double since) {
    const double seconds = steady_seconds() - since;
    if (seconds > seconds_ && is_first("ranks")) {
        spdlog::warn(
            "{}: some ranks of the program ended {:.0f} s ago and others still run, perhaps waiting for them; "
            "search.objective.timeout_seconds would end them",
            to_text(id), seconds);
    }
}

void ProgramWarnings::is_silent(search::Id id, double since) {
    const double seconds = steady_seconds() - since;
    if (seconds > seconds_ && is_first("silence")) {
        spdlog::warn(
            "{}: the persistent program has said nothing for {:.0f} s. It must read one line of standard input at a "
            "time, print 'finch done' at the individual's end, and flush what it prints",
            to_text(id), seconds);
    }
}

double ProgramWarnings::does_not_exit(search::Id id, double since) {
    const double seconds = steady_seconds() - since;
    if (seconds > seconds_ && is_first("exit")) {
        spdlog::warn(
            "{}: it reported its last epoch, has printed nothing for {:.0f} s and still runs (a thread or another "
            "process may keep it); after search.objective.grace_seconds more, Finch ends it and takes its result",
            to_text(id), seconds);
    }
    return seconds - seconds_;
}

void ProgramWarnings::is_done_with_other(search::Id id, const std::string& text) {
    if (is_first("other")) {
        spdlog::warn(
            "{0}: '{1}' is ignored, it names another individual; 'finch done {0}' or 'finch done' ends this one",
            to_text(id), text);
    }
}

void ProgramWarnings::has_ended(search::Id id, std::int64_t epochs, std::int64_t all) {
    if (epochs < all && is_first("end")) {
        spdlog::warn(
            "{}: it ended with exit code 0 after {} of {} epochs (search.objective.epochs). A pipeline has the exit "
            "code of its last command, unless the command is bash -o pipefail -c '…'",
            to_text(id), epochs, all);
    }
}

void ProgramWarnings::has_not_asked(search::Id id) {
    if (may_prune_ && is_first("question")) {
        spdlog::warn(
            "{}: it has not asked 'finch stop?', so pruning cannot end it; search.objective.interactive: false would "
            "have it ended by a signal",
            to_text(id));
    }
}

void ProgramWarnings::has_no_checkpoint(search::Id id, std::int32_t epoch, const std::string& why) {
    if (is_first("checkpoint")) {
        spdlog::warn(
            "{}: no heir can continue it after epoch {}: {}. For search.inherit, the program must write each "
            "checkpoint into a new folder in FINCH_CHECKPOINT_DIR, then report 'finch loss=0.31 epoch={} "
            "checkpoint=FOLDER', and keep the folder for some seconds",
            to_text(id), epoch, why, epoch);
    }
}

void ProgramWarnings::check_report(search::Id id, const ReportLine& line, std::int64_t epoch, std::int64_t epochs) {
    for (const char* const name : {"accuracy", "training_accuracy"}) {
        const double value = line.value(name).value_or(0);
        if ((value < 0 || value > 1) && is_first("accuracy")) {
            spdlog::warn("{}: it reports {}={:g}; accepted: a fraction from 0 to 1, such as 0.9 for 90 %", to_text(id),
                         name, value);
        }
    }
    if (epochs > 0 && epoch > epochs && is_first("epochs")) {
        spdlog::warn(
            "{}: it reports epoch {}, but search.objective.epochs is {}; set it to the epochs of a complete evaluation",
            to_text(id), epoch, epochs);
    }
}

void ProgramWarnings::has_reported(search::Id id, std::size_t epochs, double began, double first) {
    const double now = steady_seconds();
    const bool is_late = now - first < share_of_late_reports * (now - began);
    if (may_prune_ && epochs > 1 && is_late && now - began > shortest_late && is_first("late_reports")) {
        spdlog::warn(
            "{}: all {} reports arrived at the end of its {:.0f} s, too late for pruning. The program must flush each "
            "one (Python: print(…, flush=True); C: fflush(stdout); others: stdbuf -oL before the command)",
            to_text(id), epochs, now - began);
    }
}

}  // namespace finch::evaluate
