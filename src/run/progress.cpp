#include "finch/run/progress.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/log.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace finch::run {
namespace {

constexpr double live_seconds = 0.2;  ///< between two updates of the live line
constexpr double line_seconds = 0.1;  ///< minimum time between two lines; other individuals are only counted

constexpr double estimate_seconds = 2;    ///< minimum time between two estimates of the time left
constexpr double estimate_share = 0.005;  ///< of the time that estimates may take

/// The properties of the output that receives the log lines.
Terminal log_output(const config::Config& config) {
    return config.log.path.empty() ? terminal() : Terminal{};
}

/// Returns the number of epochs of an individual; 0 if it is not known.
std::int64_t whole_epochs(const config::Config& config, const search::Individual& individual) {
    const auto* const command = std::get_if<config::CommandObjective>(&config.objective);
    return config.trains()      ? config.recipe(individual.genome, individual.id.value).training.epochs
           : command != nullptr ? command->epochs
                                : 0;
}

}  // namespace

Progress::Progress(const config::Config& config, bool is_rank_zero, const search::Population& before,
                   const SearchBegin& begin, const island::Evaluator& evaluator)
    : config_(config),
      speaks_(is_rank_zero),
      evaluator_(evaluator),
      begin_(begin),
      last_line_(steady_seconds()),
      last_progress_(last_line_),
      outcomes_(is_rank_zero ? search::Outcomes(before) : search::Outcomes()) {}

std::optional<Estimate> Progress::time_left(const search::Population& population) {
    const double began = steady_seconds();
    if (began >= next_estimate_) {
        left_ = estimate_time_left(begin_, population, unix_seconds());
        estimated_at_ = began;
        const double end = steady_seconds();
        next_estimate_ = end + std::max(estimate_seconds, (end - began) / estimate_share);
    }
    if (!left_) {
        return std::nullopt;
    }
    const auto now = [passed = began - estimated_at_](double then) { return std::max(0.0, then - passed); };
    return Estimate{now(left_->low), now(left_->expected), now(left_->high)};
}

std::vector<TrainingProgress> Progress::trainings() const {
    std::vector<TrainingProgress> all;
    for (const search::Individual* one : evaluator_.in_progress()) {
        all.push_back({one->epochs, whole_epochs(config_, *one)});
    }
    return all;
}

std::string Progress::summary(const search::Population& population, const Terminal& terminal) {
    ProgressFacts facts{.finished = population.evaluations(),
                        .evaluations = config_.budget.evaluations,
                        .epochs = population.epochs(),
                        .budget_epochs = config_.budget.epochs,
                        .used = used_share(begin_, population, unix_seconds()),
                        .measure = config_.measure.name,
                        .is_new_best = is_new_best_,
                        .failures = outcomes_.failure_counts(),
                        .left = time_left(population),
                        .running = population.size() - population.finished()};
    if (search::has_result(population)) {
        facts.best = population.best()->loss;
    } else {
        facts.trainings = trainings();
    }
    return progress_text(facts, terminal);
}

void Progress::finished(const search::Individual& individual, const search::Population& population) {
    if (!speaks_) {
        return;
    }
    outcomes_.add(individual);
    const search::Individual* const best = population.best();
    is_new_best_ = best != nullptr && best->id == individual.id && best->is_complete();
    const bool is_failure = search::has_failed(individual);
    const double now = steady_seconds();
    if (now - last_line_ < line_seconds && !is_new_best_) {
        ++unsaid_;
        unsaid_failures_ += is_failure ? 1 : 0;
        return;
    }
    report_failures();
    last_line_ = now;
    const Terminal output = log_output(config_);
    const std::string text = result_text(individual,
                                         {.space = config_.space,
                                          .measure = config_.measure.name,
                                          .is_rate = config_.measure.is_rate,
                                          .is_new_best = is_new_best_,
                                          .more = std::exchange(unsaid_, 0),
                                          .prefix = log_prefix(config_.log)},
                                         output);
    spdlog::log(is_failure ? spdlog::level::warn : spdlog::level::info, "{}", is_new_best_ ? bold(text, output) : text);
}

void Progress::tick(const search::Population& population) {
    if (!speaks_) {
        return;
    }
    const double now = steady_seconds();
    if (now - last_line_ >= line_seconds) {
        report_failures();
    }
    if (LiveLine::available() && now - last_live_ >= live_seconds) {
        last_live_ = now;
        LiveLine::show(summary(population, terminal()));
    }
    if (!is_on_terminal(config_.log) && now - last_progress_ >= config_.log.interval_seconds) {
        last_progress_ = now;
        spdlog::info("{}", summary(population, log_output(config_)));
    }
}

void Progress::report_failures() {
    if (unsaid_failures_ > 0) {
        last_line_ = steady_seconds();
        const std::string text =
            fmt::format("{} failed since the last line; in total {}",
                        counted(std::exchange(unsaid_failures_, 0), "evaluation"), outcomes_.text());
        spdlog::warn("{}", on_one_row(text, log_prefix(config_.log), log_output(config_)));
    }
}

void Progress::said(const std::string& text) {
    if (speaks_) {
        spdlog::info("{}", text);
    }
}

void Progress::warned(const std::string& text) {
    spdlog::warn("{}", text);
}

}  // namespace finch::run
