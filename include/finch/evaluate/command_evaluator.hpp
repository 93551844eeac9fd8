#pragma once

#include "finch/config/config.hpp"
#include "finch/evaluate/program_warnings.hpp"
#include "finch/evaluate/programs.hpp"
#include "finch/evaluate/reported_curve.hpp"
#include "finch/island/evaluator.hpp"
#include "finch/search/population.hpp"

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace finch::evaluate {

/// How long a leader waits for its own programs before it looks for other leaders' messages: a thousandth of what an
/// evaluation takes, which is as long as the last one or as the youngest that runs has taken, whichever is more;
/// between 0.5 and 5 ms. All in seconds.
[[nodiscard]] double wait_for_programs(double last_evaluation, double youngest_running);

/// Evaluates individuals with programs (docs/programs.md), one on each rank of the worker. Leader only; the followers
/// run Programs::follow().
class CommandEvaluator : public island::Evaluator {
public:
    /// `seconds_left`: until a stop that was asked for has to be over; 0 where none was.
    CommandEvaluator(const config::Config& config, Programs& programs, const comm::Group& group,
                     std::function<const search::Population&()> population, std::function<double()> seconds_left);

    [[nodiscard]] bool has_free_slot() const override;
    [[nodiscard]] bool idle() const override;
    [[nodiscard]] bool can_exist(const search::Genome&) const override { return true; }
    [[nodiscard]] bool wants_soon() const override { return has_free_slot(); }
    void start(search::Individual individual) override;
    [[nodiscard]] std::vector<search::Individual> advance() override;
    [[nodiscard]] std::vector<search::Individual> take_progress() override;
    void settled(const search::Individual& individual) override;
    /// Programs save by themselves.
    [[nodiscard]] std::vector<search::Individual> checkpoint() override { return {}; }
    [[nodiscard]] std::vector<search::Individual> stop() override;
    [[nodiscard]] double stop_seconds() const override;
    [[nodiscard]] double checkpoint_seconds() const override { return objective_.grace_seconds; }
    void keep_alive(double seconds) override;
    void dismiss() override;

private:
    /// Why a program is being ended.
    enum class EndReason { none, failed_elsewhere, pruned, timed_out };
    struct Running {
        bool used = false;
        bool is_retry = false;  ///< it began once more
        std::int32_t port = 0;  ///< MASTER_PORT
        EndReason end_reason = EndReason::none;
        search::Individual individual{};
        ReportedCurve curve{};
        std::string misreport{};   ///< what could not be read
        ReportLine behind_text{};  ///< the last report that came behind other text, after one that counts
        double reported_at = 0;    ///< steady seconds of the first report; 0: none came
        ProgramOrder::Answers answers{};
        bool is_pruned = false;
        double began = 0;         ///< steady seconds, in this start
        double ended_at = 0;      ///< steady seconds: ended by a signal from elsewhere, maybe that of a stop; 0: not
        double waits_since = 0;   ///< steady seconds since when a rank has ended and others run; 0: not so
        std::int32_t rung = 0;    ///< that was told of
        std::int32_t epochs = 0;  ///< that were told of
        double tell_at = 0;       ///< steady seconds: its progress, next
    };

    std::vector<Programs::Standing> command(const ProgramOrder& order);
    void begin(std::uint32_t slot, bool is_retry);
    [[nodiscard]] std::vector<Programs::Standing> look();
    /// Seconds since the last evaluation of those that run began; 0 if none runs.
    [[nodiscard]] double youngest() const;
    void take_reports(std::uint32_t slot);
    void take_report(Running& running, const ReportLine& line);
    void decide(std::uint32_t slot, const Programs::Standing& standing);
    void end(std::uint32_t slot, EndReason why, double grace_seconds);
    [[nodiscard]] bool may_be_of_a_stop(std::uint32_t slot, const Programs::Standing& standing);
    [[nodiscard]] std::optional<search::Individual> ended(std::uint32_t slot, Programs::Fault fault);
    [[nodiscard]] std::string problem_of(const Running& running, bool failed) const;
    [[nodiscard]] search::Individual interrupted(std::uint32_t slot);
    [[nodiscard]] bool begins_again(std::uint32_t slot, Programs::Fault fault);
    void warn_of_end(const Running& running, const search::Individual& individual);
    void warn_of_waiting(std::uint32_t slot, const Programs::Standing& standing);
    void note_starts(std::uint32_t slot, const Programs::Standing& standing);
    void add_time(search::Individual& individual, double began) const;
    void describe_progress(search::Individual& individual) const;

    const config::Config& config_;
    const config::CommandObjective& objective_;
    Programs& programs_;
    const comm::Group& group_;
    std::function<const search::Population&()> population_;
    std::function<double()> seconds_left_;
    std::vector<Running> running_;
    std::optional<search::Standing> kept_;  ///< whose folder is kept as the best
    double last_order_ = 0;                 ///< steady seconds
    double last_look_ = 0;
    double last_seconds_ = std::numeric_limits<double>::infinity();  ///< that the evaluation which ended last took
    int not_started_ = 0;                                            ///< programs, in a row
    ProgramWarnings warnings_;
};

}  // namespace finch::evaluate
