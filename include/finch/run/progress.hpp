#pragma once

#include "finch/config/config.hpp"
#include "finch/island/worker.hpp"
#include "finch/search/outcomes.hpp"

#include <cstdint>
#include <string>

namespace finch::run {

/// The progress messages for the user, on world rank 0. Prints a line per finished individual, or a summary if
/// individuals finish faster than a person can read. Updates a live line on a terminal. Failures are logged as
/// warnings.
class Progress : public island::Observer {
public:
    /// `before`: the population of the run at the beginning of this start.
    Progress(const config::Config& config, bool is_rank_zero, const search::Population& before, double hours_before);

    void finished(const search::Individual& individual, const search::Population& population) override;
    void tick(const search::Population& population) override;
    void said(const std::string& text) override;
    void warned(const std::string& text) override;
    /// Logs the number of failures that no log line has mentioned yet.
    void report_failures();

private:
    [[nodiscard]] std::string summary(const search::Population& population) const;
    [[nodiscard]] std::string time_left(std::size_t finished) const;

    const config::Config& config_;
    bool speaks_;
    std::size_t finished_before_;
    double hours_before_;
    double began_;
    double last_line_ = 0;
    double last_live_ = 0;
    std::int64_t unsaid_ = 0;           ///< individuals that no log line has mentioned
    std::int64_t unsaid_failures_ = 0;  ///< failures that no log line has mentioned
    search::Outcomes outcomes_;         ///< of all starts, on world rank 0
};

}  // namespace finch::run
