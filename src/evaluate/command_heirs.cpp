// Heirs of programs: copies of checkpoints at rungs, and trainings that begin with them.
#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/words.hpp"
#include "finch/evaluate/command_evaluator.hpp"

#include <utility>

namespace finch::evaluate {
namespace {

/// Returns whether `name` names a folder directly in FINCH_CHECKPOINT_DIR.
bool is_name_of_folder(const std::string& name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
           printable_line(name) == name;
}

}  // namespace

bool CommandEvaluator::can_continue(const search::Individual& heir, const search::Population& population) const {
    const search::Individual* const parent = population.find(heir.inherited_from);
    return parent != nullptr &&
           search::differ_only_in(config_.inherit->move, config_.space, parent->genome, heir.genome) &&
           rung_checkpoints_.has_parent_of(heir);
}

/// Moves the beginning of all running evaluations by the time since `since`, in which Finch has copied files:
/// interactive programs may have waited for an answer.
void CommandEvaluator::leave_out(double since) {
    const double seconds = steady_seconds() - since;
    for (Running& running : running_) {
        running.began += objective_.interactive ? seconds : 0;
    }
}

/// Gives an heir the checkpoint and the reports of its parent. Throws StorageError if the files fail.
void CommandEvaluator::begin_as_heir(search::Individual& individual, ReportedCurve& curve) {
    if (!individual.is_heir()) {
        return;
    }
    keep_alive(seconds_of_files);
    const double since = steady_seconds();
    try {
        rung_checkpoints_.begin(individual, curve);
        spdlog::info("{} continues {} from epoch {} on", to_text(individual.id), to_text(individual.inherited_from),
                     individual.inherited_epochs + 1);
    } catch (const FileError& error) {
        spdlog::warn("{}: {}; the program begins anew", to_text(individual.id), error.what());
        programs_.remove_files(individual.id);  // they continue its parent
        curve = ReportedCurve(group_.size());
        search::begin_anew(individual);
    }
    leave_out(since);
}

/// Copies the checkpoint of a program that has just reached a rung and continues, before the record of the rung is
/// sent.
void CommandEvaluator::keep_at_rung(std::uint32_t slot, const std::string& checkpoint,
                                    const search::Population& population) {
    const search::Individual& individual = slots_[slot].individual;
    const ReportedCurve& curve = running_[slot].curve;
    if (!is_wanted_at_rung(individual, population, config_.inherit->parents)) {
        return;
    }
    std::string why;
    if (curve.losses().size() != static_cast<std::size_t>(individual.epochs)) {
        why = fmt::format("it is report number {}, and heirs need a report of each epoch", curve.losses().size());
    } else if (checkpoint.empty()) {
        why = "the report names no checkpoint";
    } else if (!is_name_of_folder(checkpoint)) {
        why = fmt::format("'{}' is not the name of a folder in FINCH_CHECKPOINT_DIR", printable_line(checkpoint));
    } else {
        keep_alive(seconds_of_files);
        const double since = steady_seconds();
        try {
            const auto folder = programs_.folder_of(individual.id) / config::checkpoints_folder / checkpoint;
            rung_checkpoints_.keep(individual, folder, curve, population, config_.inherit->parents);
        } catch (const ApiError& error) {
            why = error.what();
        }
        leave_out(since);
    }
    if (!why.empty() && !std::exchange(has_warned_of_checkpoint_, true)) {
        spdlog::warn(
            "{}: no heir can continue it after epoch {}: {}. For search.inherit, the program must write each "
            "checkpoint into a new folder in FINCH_CHECKPOINT_DIR, then report 'finch loss=0.31 epoch={} "
            "checkpoint=FOLDER', and keep the folder for some seconds",
            to_text(individual.id), individual.epochs, why, individual.epochs);
    }
}

}  // namespace finch::evaluate
