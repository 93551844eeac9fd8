#pragma once

#include "finch/config/config.hpp"
#include "finch/evaluate/group_evaluator.hpp"
#include "finch/evaluate/kept_files.hpp"
#include "finch/evaluate/programs.hpp"
#include "finch/evaluate/reported_curve.hpp"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace finch::evaluate {

/// Returns the seconds that a leader waits for its own programs before it polls the messages of other leaders. The wait
/// is a thousandth of the larger argument: the duration of the last evaluation, or the time since the newest running
/// evaluation started. The result is between 0.5 and 5 ms. All arguments are in seconds.
[[nodiscard]] double wait_for_programs(double last_evaluation, double youngest_running);

/// Runs programs (docs/programs.md), one on each rank of the worker or on its leader only. Heirs are in
/// command_heirs.cpp, the end of a start in command_stop.cpp.
class CommandEvaluator : public GroupEvaluator {
public:
    /// Collective over the worker. All references and pointers must outlive the evaluator.
    CommandEvaluator(const config::Config& config, const comm::Group& group, const CommandLine& line,
                     process::Launcher& launcher, Programs::Place place, energy::Meter* meter = nullptr);

    [[nodiscard]] bool can_continue(const search::Individual& heir,
                                    const search::Population& population) const override;
    void finished(const search::Individual& individual, const search::Population& population) override;
    [[nodiscard]] std::vector<search::Individual> stop() override;
    [[nodiscard]] double stop_seconds() const override;
    [[nodiscard]] double checkpoint_seconds() const override { return objective_.grace_seconds; }
    /// Returns the epochs that the running evaluation in `slot` has reported, with those of its ancestors.
    [[nodiscard]] const std::vector<Epoch>& reported(std::uint32_t slot) const {
        return running_.at(slot).curve.epochs();
    }

private:
    static constexpr double seconds_between_looks = 0.05;  ///< for polls of all ranks of a worker

    /// The reason for ending a program.
    enum class EndReason { none, failed_elsewhere, misreported, pruned, timed_out, complete };
    /// The leader's part of an evaluation.
    struct Running {
        /// Set if pruning ends it: its pruning with the rung where it ends. Until its end, the individual has the
        /// pruning of before: other leaders must not hear that it continued, and a later start must prune it if it is
        /// stopped.
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
    };

    // Every rank.
    Answer on_start(const Order& order) override;
    Answer on_advance(const Order& order) override { return programs_.look(order.slot, order.answers); }
    void on_release(const Order& order) override { programs_.release(order.slot, order.ends_programs); }
    void on_signal() override { programs_.signal(); }
    void on_end(const Order& order) override { programs_.end(order.slot, order.grace_seconds); }
    void on_dismiss() override { programs_.clear(); }
    [[nodiscard]] double worked(std::uint32_t slot) const override;

    // The leader.
    void prepare(search::Individual& individual, Order& order, const search::Population& population) override;
    void begun(const Order& order) override;
    bool wait() override;
    std::optional<search::Individual> poll(std::uint32_t slot, const search::Population& population) override;
    void describe_progress(std::uint32_t slot) override;
    void begin_as_heir(search::Individual& individual, ReportedCurve& curve);
    /// Polls an evaluation and takes its reports. `population`: null while the worker stops; rungs are then left to the
    /// next start.
    Answer look(std::uint32_t slot, const search::Population* population);
    /// Returns the seconds since the start of the newest running evaluation; 0 if none runs.
    [[nodiscard]] double youngest() const;
    void take_report(std::uint32_t slot, const ReportLine& line, const search::Population* population);
    void compare_at_rung(std::uint32_t slot, const std::string& checkpoint, const search::Population& population);
    void keep_at_rung(std::uint32_t slot, const std::string& checkpoint, const search::Population& population);
    void leave_out(double since);
    void decide(std::uint32_t slot, const Answer& answer, double seconds);
    void end(std::uint32_t slot, EndReason why, double grace_seconds);
    [[nodiscard]] bool has_reported_all(std::uint32_t slot) const;
    [[nodiscard]] bool never_exits(std::uint32_t slot);
    [[nodiscard]] bool may_be_of_a_stop(std::uint32_t slot, const Answer& answer);
    [[nodiscard]] std::optional<search::Individual> ended(std::uint32_t slot, Status status,
                                                          const search::Population& population);
    [[nodiscard]] std::string problem_of(std::uint32_t slot, bool failed) const;
    [[nodiscard]] bool begins_again(std::uint32_t slot, Status status, const search::Population& population);
    void note_starts(std::uint32_t slot, Status status);
    void add_time(std::uint32_t slot);

    const config::CommandObjective& objective_;
    Programs programs_;
    RungCheckpoints rung_checkpoints_;
    std::vector<Running> running_;                                   ///< by slot
    std::optional<search::Standing> kept_;                           ///< individual with the folder kept as the best
    double last_look_ = 0;                                           ///< steady seconds
    double last_seconds_ = std::numeric_limits<double>::infinity();  ///< duration of the evaluation that ended last
    int not_started_ = 0;                                            ///< programs that could not be started, in a row
    double seconds_of_silence_;                                      ///< before a program is taken to never exit
    bool has_warned_of_silence_ = false;
    bool has_warned_of_checkpoint_ = false;  ///< that a rung has no checkpoint for heirs
};

}  // namespace finch::evaluate
