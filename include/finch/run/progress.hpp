#pragma once

#include "finch/config/config.hpp"
#include "finch/island/evaluator.hpp"
#include "finch/island/worker.hpp"
#include "finch/run/estimate.hpp"
#include "finch/run/progress_text.hpp"
#include "finch/search/outcomes.hpp"

#include <cstdint>
#include <string>

namespace finch::run {

/// The progress messages for the user, on world rank 0. Prints a line per finished individual. If individuals
/// finish faster than a person can read, it prints each new best, and counts the others. A progress line is updated at
/// the bottom of a terminal; elsewhere it is printed every log.interval_seconds. Failures are logged as warnings.
class Progress : public island::Observer {
public:
    /// `before`: the population of the run at the beginning of this start. `evaluator`: of this worker.
    Progress(const config::Config& config, bool is_rank_zero, const search::Population& before,
             const SearchBegin& begin, const island::Evaluator& evaluator);

    void finished(const search::Individual& individual, const search::Population& population) override;
    void tick(const search::Population& population) override;
    void said(const std::string& text) override;
    void warned(const std::string& text) override;
    /// Logs the number of failures that no log line has mentioned yet.
    void report_failures();

private:
    [[nodiscard]] std::string summary(const search::Population& population, const Terminal& terminal);
    [[nodiscard]] std::vector<TrainingProgress> trainings() const;
    /// Returns the estimated time left; estimates it again if the last estimate is old.
    [[nodiscard]] std::optional<Estimate> time_left(const search::Population& population);

    const config::Config& config_;
    bool speaks_;
    const island::Evaluator& evaluator_;
    SearchBegin begin_;
    double last_line_;
    double last_progress_;
    double last_live_ = 0;
    std::int64_t unsaid_ = 0;           ///< individuals that no log line has mentioned
    std::int64_t unsaid_failures_ = 0;  ///< failures that no log line has mentioned
    search::Outcomes outcomes_;         ///< of all starts, on world rank 0
    bool is_new_best_ = false;          ///< the last finished individual is the best
    std::optional<Estimate> left_;      ///< as last estimated
    double estimated_at_ = 0;
    double next_estimate_ = 0;
};

}  // namespace finch::run
