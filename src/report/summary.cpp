#include "finch/report/summary.hpp"

#include "finch/base/format.hpp"
#include "finch/base/loss_order.hpp"
#include "finch/base/words.hpp"
#include "finch/report/status.hpp"
#include "finch/search/outcomes.hpp"

#include "gene_effects.hpp"
#include "next_steps.hpp"
#include "population_of.hpp"
#include "sample_losses.hpp"
#include "statistics.hpp"

#include <algorithm>
#include <cmath>

namespace finch::report {
namespace {

constexpr std::size_t fewest_for_convergence = 12;
constexpr std::size_t enough_for_convergence = 30;
constexpr std::size_t fewest_random = 5;
constexpr std::size_t fewest_bred = 10;
constexpr double chance = 0.05;
constexpr std::size_t best_curves = 5;
constexpr std::int32_t shortest_curve = 3;
constexpr std::size_t shown_genes = 3;

/// The data that several sentences need, computed once.
struct Run {
    explicit Run(const SummaryInput& of);

    const SummaryInput& input;
    Individuals finished;  ///< with a result or a failure of their own, without repeats, in the order of their ends
    Individuals tried;     ///< of these, those that did not fail: a failure says nothing about the search
    Individuals complete;  ///< of these, those with a loss of a complete training that keep search.limits, best first
    const search::Individual* best = nullptr;
    std::optional<SampleLosses> validation;  ///< of the published network
    std::optional<SampleLosses> test;
    std::vector<GeneEffect> effects;
    Individuals front;              ///< of several objectives
    std::int64_t new_in_front = 0;  ///< individuals of the front that the last third of the evaluations found
    bool is_improving = false;      ///< the last third of the evaluations found something better
    bool may_train_longer = false;

    [[nodiscard]] std::string value(double loss) const {
        return input.competition.measure.is_rate ? fmt::format("{:.2f} %", 100 * loss) : fmt::format("{:.4g}", loss);
    }
    [[nodiscard]] const std::string& measure() const { return input.competition.measure.name; }
    /// "network", or "individual" of a function or a program.
    [[nodiscard]] std::string_view noun() const { return input.trains ? "network" : "individual"; }
};

bool keeps_limits(const search::Individual* individual) {
    return individual->is_complete() && individual->violation == 0;
}

/// Returns the loss of a complete training that keeps search.limits, and infinity of all others.
double loss_of(const search::Individual& individual) {
    return keeps_limits(&individual) ? individual.loss : std::numeric_limits<double>::infinity();
}

double least_loss(std::span<const search::Individual* const> some) {
    std::vector<double> losses;
    std::transform(some.begin(), some.end(), std::back_inserter(losses), [](const auto* one) { return loss_of(*one); });
    return smallest_loss(losses);
}

/// The evaluations before the last third of them.
std::span<const search::Individual* const> first_two_thirds(const Individuals& finished) {
    return std::span(finished).first(finished.size() - finished.size() / 3);
}

/// Most of the best trainings had their best epoch at their end, and training.epochs, not patience, ended them.
bool may_train_longer(const Run& run) {
    const std::size_t count = std::min(best_curves, run.complete.size());
    const auto is_falling = [&run](const search::Individual* one) {
        return one->epochs >= shortest_curve && one->best_epoch == one->epochs &&
               (!run.input.epochs || one->epochs == *run.input.epochs);
    };
    const auto falling =
        std::count_if(run.complete.begin(), run.complete.begin() + static_cast<std::ptrdiff_t>(count), is_falling);
    return count >= 3 && 2 * static_cast<std::size_t>(falling) > count;
}

Run::Run(const SummaryInput& of) : input(of) {
    for (const auto& [id, individual] : input.population.individuals()) {
        if (individual.finished_training() && !individual.is_repeat() && !individual.is_reused()) {
            finished.push_back(&individual);
        }
    }
    std::sort(finished.begin(), finished.end(), [](const auto* a, const auto* b) {
        return std::pair(a->finished, a->id) < std::pair(b->finished, b->id);
    });
    std::remove_copy_if(finished.begin(), finished.end(), std::back_inserter(tried),
                        [](const auto* one) { return search::has_failed(*one); });
    std::copy_if(tried.begin(), tried.end(), std::back_inserter(complete), keeps_limits);
    std::sort(complete.begin(), complete.end(), [](const auto* a, const auto* b) { return better(*a, *b); });
    best = input.population.best();
    best = best != nullptr && best->is_complete() ? best : nullptr;
    validation = sample_losses(input.results, "validation", input.competition.measure.is_rate);
    test = sample_losses(input.results, "test", input.competition.measure.is_rate);
    effects = gene_effects(input.space, complete);
    const auto is_new = [this](const search::Individual* one) {
        return std::find(tried.end() - std::ssize(tried) / 3, tried.end(), one) != tried.end();
    };
    if (!input.competition.costs.empty()) {
        front = search::pareto_front(ranked(input.population), input.competition.costs);
        new_in_front = std::count_if(front.begin(), front.end(), is_new);
    }
    is_improving = new_in_front > 0 || is_better_loss(least_loss(tried), least_loss(first_two_thirds(tried)));
    may_train_longer = report::may_train_longer(*this);
}

std::string interval_text(const Run& run, const SampleLosses& losses, const Interval& interval) {
    const bool is_rate = losses.errors.has_value();
    const auto text = [&](double value) { return is_rate ? fmt::format("{:.2f}", 100 * value) : run.value(value); };
    return fmt::format("{} to {}{}", text(interval.low), text(interval.high), is_rate ? " %" : "");
}

/// The 95 % interval of the best loss, given the validation samples; nothing if these are not known.
std::optional<Interval> interval_of_best(const Run& run) {
    if (!run.validation || run.best == nullptr) {
        return std::nullopt;
    }
    if (run.input.competition.measure.is_rate) {
        return wilson_interval(std::llround(run.best->loss * static_cast<double>(run.validation->samples)),
                               run.validation->samples);
    }
    // The published network may be a repeat of the best: its interval is moved to the best one's loss.
    const double shift = run.best->loss - run.validation->loss;
    return run.validation->interval
               ? std::optional(Interval{run.validation->interval->low + shift, run.validation->interval->high + shift})
               : std::nullopt;
}

std::string best_sentence(const Run& run) {
    if (run.best == nullptr) {
        return run.finished.empty() ? "Nothing is evaluated yet." : "No evaluation gave a result.";
    }
    const std::string value = fmt::format("The best {} is {}", run.measure(), run.value(run.best->loss));
    const std::string id = to_text(run.best->id);
    if (run.best->is_reused()) {
        return fmt::format("{}: {} {} has it from another run.", value, run.noun(), id);
    }
    const auto at = std::find(run.finished.begin(), run.finished.end(), run.best) - run.finished.begin();
    return fmt::format("{}: {} {}, which was evaluation {} of {}.", value, run.noun(), id, at + 1, run.finished.size());
}

std::string convergence_sentence(const Run& run) {
    if (run.best == nullptr) {
        return "";
    }
    const std::size_t count = run.tried.size();
    const double before = least_loss(first_two_thirds(run.tried));
    if (count < fewest_for_convergence || !std::isfinite(before)) {
        return fmt::format("Too few results to tell whether the search has converged: {}.", run.complete.size());
    }
    const std::string last = fmt::format("The last {} evaluations", count / 3);
    if (!run.front.empty() && run.is_improving) {
        return fmt::format("{} found {} of the {} {}s of the front: more evaluations may improve it further.", last,
                           run.new_in_front, run.front.size(), run.noun());
    }
    if (!run.is_improving) {
        return last + (count >= enough_for_convergence
                           ? " found nothing better: the search has converged, or needs another space."
                           : fmt::format(" found nothing better, but {} evaluations are few.", count));
    }
    const double now = least_loss(run.tried);
    const std::optional<Interval> noise = interval_of_best(run);
    return fmt::format(
        "{} improved the best {} from {} to {}{}", last, run.measure(), run.value(before), run.value(now),
        noise && before <= noise->high
            ? fmt::format(", which is within the noise of {} validation samples.", run.validation->samples)
            : ": more evaluations may improve it further.");
}

std::string test_sentence(const Run& run) {
    if (!run.test) {
        return "";
    }
    const SampleLosses& test = *run.test;
    const auto value = [](const SampleLosses& one) {
        return one.errors ? fmt::format("an error of {:.2f} %", 100 * one.loss)
                          : fmt::format("a loss of {:.4g}", one.loss);
    };
    const std::string text =
        fmt::format("On the {} test samples, which the search has not seen, the network in models/best.h5 has {}{}.",
                    test.samples, value(test),
                    test.interval ? fmt::format(" (95 % interval: {})", interval_text(run, test, *test.interval)) : "");
    const auto validation = sample_losses(run.input.results, "validation", test.errors.has_value());
    const bool is_worse = validation && validation->interval && test.interval &&
                          validation->errors.has_value() == test.errors.has_value() &&
                          test.interval->low > validation->interval->high;
    return is_worse ? fmt::format(
                          "{} This is worse than {} on the {} validation samples, which the search has seen: "
                          "more validation samples would make its choice more reliable.",
                          text, value(*validation), validation->samples)
                    : text;
}

std::string equals_sentence(const Run& run) {
    const std::optional<Interval> interval = interval_of_best(run);
    if (!interval) {
        return "";
    }
    const search::Individual* smallest = run.best;
    std::int64_t equals = 0;
    for (const search::Individual* one : run.complete) {
        if (one != run.best && !is_better_loss(interval->high, one->loss)) {
            ++equals;
            smallest = one->parameters > 0 && one->parameters < smallest->parameters ? one : smallest;
        }
    }
    const std::string samples = fmt::format("{} validation samples", run.validation->samples);
    if (equals == 0) {
        return fmt::format("No other network is as good, given {} (95 % interval: up to {}).", samples,
                           run.value(interval->high));
    }
    return fmt::format(
        "{} equally good, given {}: {} {} is at most {}, the upper end of the best one's 95 % interval{}.",
        equals == 1 ? "1 other network is" : fmt::format("{} other networks are", equals), samples,
        equals == 1 ? "its" : "their", run.measure(), run.value(interval->high),
        2 * smallest->parameters <= run.best->parameters
            ? fmt::format("; {} has {} parameters instead of {}", to_text(smallest->id), smallest->parameters,
                          run.best->parameters)
            : "");
}

std::string final_sentence(const Run& run) {
    const auto& choice = run.input.competition.final_choice;
    const auto candidates =
        choice ? search::final_candidates(run.input.population, *choice) : std::vector<search::Candidate>();
    const search::Candidate* const winner = choice ? search::winner_of(candidates, *choice) : nullptr;
    if (winner == nullptr) {
        return "";
    }
    const std::string deviation =
        std::isfinite(winner->deviation) ? fmt::format(" ± {}", run.value(winner->deviation)) : "";
    return fmt::format("Of the best {}, trained again with other seeds, {} is the most reliable: {} {}{} in {}.",
                       candidates.size(), to_text(winner->individual->id), run.measure(), run.value(winner->mean),
                       deviation, counted(winner->finished, "repeat"));
}

std::string costs_text(const Run& run, const search::Individual& individual) {
    std::vector<std::string> words{fmt::format("{} {}", run.measure(), run.value(individual.loss))};
    for (const search::Cost& one : run.input.competition.costs) {
        const search::Cost cost = one.as_reported();
        const double value = search::cost_of(cost, individual);
        words.push_back(cost.quantity == search::Quantity::parameters ? fmt::format("{:.0f} {}", value, to_text(cost))
                                                                      : fmt::format("{:.3g} {}", value, to_text(cost)));
    }
    return fmt::format("{}", fmt::join(words, ", "));
}

std::string front_sentence(const Run& run) {
    const Individuals& front = run.front;
    if (front.empty()) {
        return "";
    }
    if (front.size() == 1) {
        return fmt::format("The front has one {}: {} ({}) is best in every objective.", run.noun(),
                           to_text(front[0]->id), costs_text(run, *front[0]));
    }
    return fmt::format("The front has {} {}s, which no other beats in all objectives: from {} ({}) to {} ({}).",
                       front.size(), run.noun(), to_text(front.front()->id), costs_text(run, *front.front()),
                       to_text(front.back()->id), costs_text(run, *front.back()));
}

/// Returns the comparison of the medians; empty if at least half of a group has no loss.
std::string median_text(const Run& run, const std::vector<double>& bred, const std::vector<double>& random) {
    const double of_bred = loss_at_place(bred, bred.size() / 2);
    const double of_random = loss_at_place(random, random.size() / 2);
    return std::isfinite(of_bred) && std::isfinite(of_random)
               ? fmt::format(", and their median {} is {} instead of {}", run.measure(), run.value(of_bred),
                             run.value(of_random))
               : "";
}

std::string random_search_sentence(const Run& run) {
    std::vector<double> random;
    std::vector<double> bred;
    for (const search::Individual* one : run.finished) {
        (one->bred_by == search::Operator::random ? random : bred).push_back(loss_of(*one));
    }
    if (run.best == nullptr || bred.empty()) {
        return "";
    }
    if (random.size() < fewest_random || bred.size() < fewest_bred) {
        return fmt::format("Too few results to compare with random search: {} random, {} bred.", random.size(),
                           bred.size());
    }
    const double best_random = smallest_loss(random);
    const auto beating =
        std::count_if(bred.begin(), bred.end(), [&](double loss) { return is_better_loss(loss, best_random); });
    const bool is_better = exceedance_probability(beating, std::ssize(bred), std::ssize(random)) < chance;
    const bool is_better_on_average = rank_sum_score(bred, random) > normal_quantile;
    return fmt::format(
        "{} of {} bred {}s beat the best of {} random ones (by chance {:.2g} on average){}: {}.", beating, bred.size(),
        run.noun(), random.size(), static_cast<double>(bred.size()) / static_cast<double>(random.size() + 1),
        median_text(run, bred, random),
        is_better               ? "the search is better than random search"
        : !is_better_on_average ? "such a difference can be chance"
        : beating > 0           ? "the search is better than random search on average, but its best may be so by chance"
                                : "the search is better than random search on average, but has no better best");
}

std::string genes_sentence(const Run& run) {
    if (run.best == nullptr) {
        return "";
    }
    if (run.complete.size() < fewest_for_effects) {
        return fmt::format("Too few results to tell which genes matter: {} of at least {}.", run.complete.size(),
                           fewest_for_effects);
    }
    if (run.effects.empty()) {
        return fmt::format("No gene has an effect that exceeds chance in {} results.", run.complete.size());
    }
    std::vector<std::string> words;
    for (std::size_t i = 0; i < std::min(shown_genes, run.effects.size()); ++i) {
        const GeneEffect& effect = run.effects[i];
        words.push_back(fmt::format("{} ({:.0f} %; best fifth: {})", run.input.space.genes[effect.gene].name,
                                    100 * effect.share, effect.best_fifth));
    }
    return fmt::format("{} mattered, by the share of the differences in rank that each explains: {}.",
                       counted(std::ssize(run.effects), "gene"), fmt::join(words, ", "));
}

std::vector<std::string> bound_sentences(const Run& run) {
    std::vector<std::string> sentences;
    for (const GeneEffect& effect : run.effects) {
        const search::Gene& gene = run.input.space.genes[effect.gene];
        if (effect.bound != GeneEffect::Bound::none) {
            const bool is_low = effect.bound == GeneEffect::Bound::low;
            const double bound = search::from_unit(gene, is_low ? 0 : 1);
            const bool is_real = std::holds_alternative<search::RealGene>(gene.kind);
            sentences.push_back(fmt::format("The best values of {} lie at its {} bound {}: try {} values.", gene.name,
                                            is_low ? "lower" : "upper",
                                            is_real ? fmt::format("{:.6g}", bound) : search::value_text(gene, bound),
                                            is_low ? "smaller" : "larger"));
        }
    }
    return sentences;
}

std::string curves_sentence(const Run& run) {
    return run.may_train_longer ? fmt::format("Most of the {} best {}s were best in their last epoch: train longer.",
                                              std::min(best_curves, run.complete.size()), run.noun())
                                : "";
}

std::string failures_sentence(const Run& run) {
    const search::Outcomes outcomes(run.input.population);
    return outcomes.without_result() == 0 ? ""
                                          : fmt::format("{} of {} gave no result ({}){}.", outcomes.without_result(),
                                                        counted(std::ssize(run.finished), "evaluation"),
                                                        outcomes.failure_counts(), outcomes.problems());
}

std::string limits_sentence(const Run& run) {
    const auto broken = std::count_if(run.finished.begin(), run.finished.end(), [](const search::Individual* one) {
        return one->is_complete() && one->violation > 0;
    });
    return broken == 0 ? ""
           : run.complete.empty()
               ? fmt::format("All {} break search.limits: the best one breaks them least.", counted(broken, "result"))
               : fmt::format("{} of {} break search.limits and rank behind the others.", broken,
                             counted(broken + std::ssize(run.complete), "result"));
}

}  // namespace

std::vector<Sentence> summary(const SummaryInput& input) {
    const Run run(input);
    const bool is_search = !is_single_training(input);
    std::vector<Sentence> sentences;
    const auto add = [&sentences](Topic topic, std::string text) {
        if (!text.empty()) {
            sentences.push_back({topic, std::move(text)});
        }
    };
    add(Topic::best, best_sentence(run));
    add(Topic::convergence, is_search ? convergence_sentence(run) : "");
    add(Topic::test, test_sentence(run));
    add(Topic::equals, equals_sentence(run));
    add(Topic::final_choice, final_sentence(run));
    add(Topic::front, front_sentence(run));
    add(Topic::random_search, is_search ? random_search_sentence(run) : "");
    add(Topic::genes, is_search ? genes_sentence(run) : "");
    for (std::string& text : bound_sentences(run)) {
        add(Topic::bounds, std::move(text));
    }
    add(Topic::curves, curves_sentence(run));
    add(Topic::failures, failures_sentence(run));
    add(Topic::failures, limits_sentence(run));
    const Advice advice{run.best != nullptr, run.is_improving || run.tried.size() < enough_for_convergence,
                        run.may_train_longer, run.effects};
    for (std::string& text : next_steps(input, advice)) {
        add(Topic::next, std::move(text));
    }
    return sentences;
}

std::string statistics_json(const SummaryInput& input) {
    const Run run(input);
    const auto text = [](const std::optional<Interval>& interval) {
        return interval ? fmt::format("[{},{}]", interval->low, interval->high) : "null";
    };
    std::vector<double> shares(input.space.size());
    for (const GeneEffect& effect : run.effects) {
        shares[effect.gene] = effect.share;
    }
    const bool tells_genes = run.complete.size() >= fewest_for_effects;
    return fmt::format(R"({{"best_interval":{},"test_error_interval":{},"gene_shares":{}}})",
                       text(interval_of_best(run)),
                       text(run.test && run.test->errors ? run.test->interval : std::nullopt),
                       tells_genes ? fmt::format("[{}]", fmt::join(shares, ",")) : "null");
}

}  // namespace finch::report
