#include "finch/run/progress.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace finch::run {
namespace {

constexpr double live_seconds = 0.2;  ///< between two updates of the live line
constexpr double line_seconds = 0.1;  ///< minimum time between two lines; other individuals are only counted

std::string score_text(const search::Individual& individual, const std::string& fitness) {
    std::string text = fmt::format("{}", word(individual.outcome));
    if (std::isfinite(individual.loss)) {
        text += fmt::format(", {} {:.5g}", fitness, individual.loss);
    }
    if (std::isfinite(individual.accuracy)) {
        text += fmt::format(", accuracy {:.2f} %", 100 * individual.accuracy);
    }
    if (individual.is_reused()) {
        text += ", as " + to_text(individual.reused_from) + (individual.is_of_another_run() ? " of another run" : "");
    } else if (individual.epochs > 0) {
        text +=
            fmt::format(", {} in {}", counted(individual.epochs, "epoch"), duration_text(individual.training_seconds));
    }
    return individual.problem.empty() ? text : text + ": " + search::one_line(individual.problem);
}

}  // namespace

Progress::Progress(const config::Config& config, bool is_rank_zero, const search::Population& before,
                   double hours_before)
    : config_(config),
      speaks_(is_rank_zero),
      finished_before_(before.evaluations()),
      hours_before_(hours_before),
      began_(steady_seconds()),
      last_line_(began_),
      outcomes_(is_rank_zero ? search::Outcomes(before) : search::Outcomes()) {}

std::string Progress::time_left(std::size_t finished) const {
    const double passed = steady_seconds() - began_;
    double left = std::numeric_limits<double>::infinity();
    if (config_.budget.evaluations && finished > finished_before_) {
        const double each = passed / static_cast<double>(finished - finished_before_);
        left = each * std::max(0.0, static_cast<double>(*config_.budget.evaluations) - static_cast<double>(finished));
    }
    if (config_.budget.hours) {
        left = std::min(left, std::max(0.0, (*config_.budget.hours - hours_before_) * 3600 - passed));
    }
    return std::isfinite(left) ? ", about " + duration_text(left) + " left" : "";
}

std::string Progress::summary(const search::Population& population) const {
    const std::size_t finished = population.evaluations();
    const double passed = std::max(1e-3, steady_seconds() - began_);
    const double hourly = static_cast<double>(finished - finished_before_) * 3600 / passed;
    const search::Individual* best = population.best();
    return fmt::format(
        "{}{}{}{}{}, {:.0f} evaluations/h{}", finished,
        config_.budget.evaluations ? fmt::format("/{}", *config_.budget.evaluations) : "",
        config_.budget.epochs ? fmt::format(", {}/{} epochs", population.epochs(), *config_.budget.epochs) : "",
        best != nullptr && best->is_complete()
            ? fmt::format(", best {} {:.5g} ({})", config_.measure.name, best->loss, to_text(best->id))
            : "",
        outcomes_.failure_counts(), hourly, time_left(finished));
}

void Progress::finished(const search::Individual& individual, const search::Population& population) {
    if (!speaks_) {
        return;
    }
    outcomes_.add(individual);
    const bool is_failure = search::has_failed(individual);
    const double now = steady_seconds();
    if (now - last_line_ < line_seconds) {
        ++unsaid_;
        unsaid_failures_ += is_failure ? 1 : 0;
        return;
    }
    report_failures();
    last_line_ = now;
    const std::string more = unsaid_ > 0 ? fmt::format(" (and {} more)", unsaid_) : "";
    unsaid_ = 0;
    const std::string what = individual.is_repeat() ? fmt::format("repeats {}", to_text(individual.parents[0]))
                                                    : fmt::format("on island {}", individual.island);
    spdlog::log(is_failure ? spdlog::level::warn : spdlog::level::info, "{} {}: {} [{}]{} | {}", to_text(individual.id),
                what, score_text(individual, config_.measure.name),
                search::genome_text(config_.space, individual.genome), more, summary(population));
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
        LiveLine::show(
            fmt::format("{}, {} in training", summary(population), population.size() - population.finished()));
    }
    if (!LiveLine::available() && now - last_line_ >= config_.log.interval_seconds) {
        last_line_ = now;
        spdlog::info("{}, {} in training", summary(population), population.size() - population.finished());
    }
}

void Progress::report_failures() {
    if (unsaid_failures_ > 0) {
        last_line_ = steady_seconds();
        spdlog::warn("{} failed since the last line; in total {}",
                     counted(std::exchange(unsaid_failures_, 0), "evaluation"), outcomes_.text());
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
