#pragma once

#include "finch/config/config.hpp"
#include "finch/evaluate/group_evaluator.hpp"
#include "finch/evaluate/programs.hpp"
#include "finch/evaluate/reported_curve.hpp"
#include "finch/evaluate/rung_checkpoints.hpp"
#include "finch/search/population.hpp"

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace finch::evaluate {

/// Returns the seconds that a leader waits for its own programs before it polls the messages of other leaders. The wait
/// is a thousandth of the larger argument: the duration of the last evaluation, or the time since the newest running
/// evaluation started. The result is between 0.5 and 5 ms. All arguments are in seconds.
[[nodiscard]] double wait_for_programs(double last_evaluation, double youngest_running);

/// An evaluator that runs programs (docs/programs.md), one on each rank of the worker or on its leader only. Leader
/// only.
class CommandEvaluator : public GroupEvaluator {
public:
    /// `run`: the run's number. `seconds_left`: the time left to finish a requested stop; 0 if none was requested.
    CommandEvaluator(const config::Config& config, Programs& programs, const comm::Group& group, std::uint64_t run,
                     std::function<const search::Population&()> population, std::function<double()> seconds_left);

    [[nodiscard]] bool can_continue(const search::Individual& heir) const override;
    void start(search::Individual individual) override;
    [[nodiscard]] std::vector<search::Individual> advance() override;
    void finished(const search::Individual& individual) override;
    /// Does nothing: programs write their own checkpoints.
    [[nodiscard]] std::vector<search::Individual> checkpoint() override { return {}; }
    [[nodiscard]] std::vector<search::Individual> stop() override;
    /// Returns the epochs that the running evaluation in `slot` has reported, with those of its ancestors.
    [[nodiscard]] const std::vector<Epoch>& reported(std::uint32_t slot) const {
        return running_.at(slot).curve.epochs();
    }
    [[nodiscard]] double stop_seconds() const override;
    [[nodiscard]] double checkpoint_seconds() const override { return objective_.grace_seconds; }

private:
    static constexpr double seconds_between_looks = 0.05;  ///< for polls of all ranks of a worker

    /// The reason for ending a program.
    enum class EndReason { none, failed_elsewhere, misreported, pruned, timed_out, complete };
    struct Running : Evaluation {
        /// Set if pruning ends it: its pruning with the rung where it ends. Until its end, `individual` has the pruning
        /// of before: other leaders must not hear that it continued, and a later start must prune it if it is stopped.
        std::optional<search::Pruning> last_pruning{};
        bool is_retry = false;  ///< the evaluation was started a second time
        std::int32_t port = 0;  ///< MASTER_PORT
        EndReason end_reason = EndReason::none;
        ReportedCurve curve{};
        std::string misreport{};    ///< the first report that could not be read
        bool has_reported = false;  ///< in this start
        Order::Answers answers{};
        double began = 0;     ///< steady seconds, in this start; later if it may have waited for copies
        double ended_at = 0;  ///< steady seconds: a signal from outside, maybe of a stop, ended it; 0: none
        double tell_at = 0;   ///< steady seconds: next report of its progress
    };

    using GroupEvaluator::evaluation;
    [[nodiscard]] std::uint32_t slots() const override { return static_cast<std::uint32_t>(running_.size()); }
    [[nodiscard]] const Evaluation& evaluation(std::uint32_t slot) const override { return running_[slot]; }
    void obey(const Order& order) override { standings_ = programs_.obey(order); }
    [[nodiscard]] bool is_to_be_told(std::uint32_t slot) const override;
    void describe_progress(std::uint32_t slot) override;
    void begin(std::uint32_t slot, bool is_retry);
    void begin_as_heir(std::uint32_t slot);
    void look();
    /// Returns the seconds since the start of the newest running evaluation; 0 if none runs.
    [[nodiscard]] double youngest() const;
    void take_reports(std::uint32_t slot);
    void take_report(Running& running, const ReportLine& line);
    void keep_at_rung(const Running& running, const std::string& checkpoint);
    void leave_out(double since);
    void decide(std::uint32_t slot, const Programs::Standing& standing);
    void end(std::uint32_t slot, EndReason why, double grace_seconds);
    [[nodiscard]] bool has_reported_all(const Running& running) const;
    [[nodiscard]] bool never_exits(std::uint32_t slot);
    [[nodiscard]] bool may_be_of_a_stop(std::uint32_t slot, const Programs::Standing& standing);
    [[nodiscard]] std::optional<search::Individual> ended(std::uint32_t slot, Programs::Fault fault);
    [[nodiscard]] std::string problem_of(const Running& running, bool failed) const;
    [[nodiscard]] search::Individual interrupted(std::uint32_t slot);
    [[nodiscard]] bool begins_again(std::uint32_t slot, Programs::Fault fault);
    void note_starts(std::uint32_t slot, const Programs::Standing& standing);
    void add_time(search::Individual& individual, double began) const;

    const config::CommandObjective& objective_;
    Programs& programs_;
    std::function<const search::Population&()> population_;
    std::function<double()> seconds_left_;
    RungCheckpoints rung_checkpoints_;
    std::vector<Running> running_;
    std::vector<Programs::Standing> standings_;                      ///< by slot, after look()
    std::optional<search::Standing> kept_;                           ///< individual with the folder kept as the best
    double last_look_ = 0;                                           ///< steady seconds
    double last_seconds_ = std::numeric_limits<double>::infinity();  ///< duration of the evaluation that ended last
    bool has_copied_ = false;                                        ///< since the last look()
    int not_started_ = 0;                                            ///< programs that could not be started, in a row
    double seconds_of_silence_;                                      ///< before a program is taken to never exit
    bool has_warned_of_silence_ = false;
    bool has_warned_of_checkpoint_ = false;  ///< that a rung has no checkpoint for heirs
};

}  // namespace finch::evaluate
