#include "finch/report/tables.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/report/individual.hpp"
#include "finch/report/status.hpp"

#include "grid.hpp"
#include "joules.hpp"
#include "population_of.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace finch::report {
namespace {

constexpr std::size_t shown_events = 10;
constexpr std::size_t shown_starts = 5;

std::string percent(double share) {
    return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "-";
}

/// Returns the total run time of all starts.
double seconds_of_run(const store::ArchiveFacts& facts) {
    double all = 0;
    for (const auto& [restart, seconds] : store::seconds_of_starts(facts)) {
        all += seconds;
    }
    return all;
}

/// Returns the training time of an individual over all starts. If it was not recorded, returns the time from the last
/// start of the training to its end.
double seconds_of(const search::Individual& individual) {
    return individual.training_seconds > 0 ? individual.training_seconds : individual.finished - individual.started;
}

/// Returns the training time as text, "12.3", or the individual from which the result was reused.
std::string seconds_text(const search::Individual& individual, const store::ArchiveFacts& facts) {
    return individual.is_reused() ? "as " + reused_from_text(individual, facts)
                                  : fmt::format("{:.1f}", seconds_of(individual));
}

/// Returns the energy as text: "45.6 kJ", or "-" if the result was reused from another individual.
std::string joules_cell(const search::Individual& individual) {
    return individual.is_reused() ? "-" : joules_text(individual.joules);
}

/// Returns a table of individuals. Has a column for the energy if `tells_energy` is true.
std::string rows_of(const search::Space& space, const Individuals& best, const store::ArchiveFacts& facts,
                    const std::string& fitness, bool tells_energy) {
    std::vector<std::string> head{"id", fitness, "accuracy", "epochs", "generation", "seconds"};
    head.insert(head.end(), tells_energy ? 1 : 0, "energy");
    head.emplace_back("genes");
    Grid grid(head);
    for (const search::Individual* individual : best) {
        std::vector<std::string> line{
            to_text(individual->id),
            fmt::format("{:.6g}", individual->loss),
            percent(individual->accuracy),
            fmt::format("{}{}", individual->epochs, individual->is_complete() ? "" : " (pruned)"),
            std::to_string(individual->generation),
            seconds_text(*individual, facts)};
        line.insert(line.end(), tells_energy ? 1 : 0, joules_cell(*individual));
        line.push_back(search::genome_text(space, individual->genome));
        grid.add(std::move(line));
    }
    return grid.empty() ? "  none yet\n" : grid.text();
}

std::string heading(const store::Recovered& recovered, const search::Population& population, const std::string& run,
                    const Competition& competition) {
    const store::ArchiveFacts& facts = recovered.facts;
    std::string text = fmt::format("run {}: {}\n", printable_line(run), state_text(facts.state, population));
    text += fmt::format("  minimises {}\n", objectives_text(competition));
    const std::size_t reused = population.finished() - population.evaluations();
    const std::string trained =
        population.epochs() > 0 ? ", " + counted_of(population.epochs(), facts.budget_epochs, "epoch") : "";
    text += fmt::format(
        "  {}, {}{} unfinished, {}, {}, seed {}{}\n",
        counted_of(static_cast<std::int64_t>(population.evaluations()), facts.budget_evaluations, "evaluation"),
        reused > 0 ? fmt::format("{} reused, ", reused) : "", population.size() - population.finished(),
        counted(std::max(0, facts.islands), "island"), counted(std::int64_t{facts.restarts} + 1, "start"), facts.seed,
        trained);
    const double rate = evaluations_per_hour(facts);
    if (rate > 0) {
        text += fmt::format("  {} in all, {:.1f} evaluations per hour\n", duration_text(seconds_of_run(facts)), rate);
    }
    if (const std::string energy = RunJoules(population).text(); !energy.empty()) {
        text += fmt::format("  energy: {}\n", energy);
    }
    return text;
}

}  // namespace

std::string best_table(const search::Space& space, const search::Population& population,
                       const store::ArchiveFacts& facts, const Top& top, const std::string& fitness) {
    const auto count = static_cast<std::size_t>(std::max(0, top.count));
    const bool tells_energy = RunJoules(population).sum > 0;
    const auto table = [&](const std::string& where, const Individuals& best, std::size_t active) {
        return fmt::format("{}: the best {} of {}{}\n{}", where, best.size(),
                           counted(static_cast<std::int64_t>(active), "individual"),
                           facts.restarts > 0 ? fmt::format(", after {} starts", facts.restarts + 1) : "",
                           rows_of(space, best, facts, fitness, tells_energy));
    };
    const bool one_by_one = population.islands() > 1 && population.kind() == search::ExchangeKind::migration;
    if (!one_by_one && !top.of_each_island) {
        const Individuals all = ranked(population);
        return table("best of all", first_of(all, count), all.size());
    }
    std::string text;
    for (int island = 0; island < population.islands(); ++island) {
        text += table(fmt::format("island {}", island), population.best(island, count), population.active(island));
    }
    return text;
}

std::string final_table(const search::Space& space, const search::Population& population,
                        const std::optional<search::FinalChoice>& choice, const std::string& fitness) {
    const auto candidates = choice ? search::final_candidates(population, *choice) : std::vector<search::Candidate>();
    const auto is_repeated = [](const search::Candidate& one) { return !one.repeats.empty(); };
    if (std::none_of(candidates.begin(), candidates.end(), is_repeated)) {
        return "";
    }
    const auto number = [](double value) { return std::isnan(value) ? "-" : fmt::format("{:.6g}", value); };
    Grid grid({"id", fitness, "repeated", "deviation", "repeats", "failed", "genes"});
    for (const search::Candidate& one : candidates) {
        grid.add({to_text(one.individual->id), number(one.individual->loss), number(one.mean), number(one.deviation),
                  std::to_string(one.finished), std::to_string(one.failed),
                  search::genome_text(space, one.individual->genome)});
    }
    const search::Candidate* winner = search::winner_of(candidates, *choice);
    return fmt::format("final choice: the best {} again with other seeds; {}\n{}", candidates.size(),
                       winner == nullptr
                           ? "no winner"
                           : fmt::format("{} wins{}, its best repeat is {}", to_text(winner->individual->id),
                                         winner->predicted == winner->mean ? "" : " by the model of all results",
                                         to_text(winner->repeats.front()->id)),
                       grid.text());
}

std::string front_table(const search::Space& space, const search::Population& population,
                        const std::vector<search::Cost>& costs, const std::string& fitness) {
    if (costs.empty()) {
        return "";
    }
    const Individuals all = ranked(population);
    std::vector<std::string> head{"id", fitness};
    for (const search::Cost& cost : costs) {
        head.push_back(to_text(cost.as_reported()));
    }
    head.insert(head.end(), {"accuracy", "genes"});
    Grid grid(head);
    const auto front = search::pareto_front(all, costs);
    for (const search::Individual* individual : front) {
        std::vector<std::string> line{to_text(individual->id), fmt::format("{:.6g}", individual->loss)};
        for (const search::Cost& cost : costs) {
            const double value = search::cost_of(cost.as_reported(), *individual);
            line.push_back(value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.6g}", value));
        }
        line.insert(line.end(), {percent(individual->accuracy), search::genome_text(space, individual->genome)});
        grid.add(std::move(line));
    }
    std::string volume;
    if (const auto found = search::volume_of(front, costs)) {
        std::vector<std::string> reference;
        for (std::size_t i = 0; i < found->reference.size(); ++i) {
            reference.push_back(fmt::format("{} {:.4g}", head[i + 1], found->reference[i]));
        }
        volume = fmt::format("hypervolume: {:.4f} of the box between the front's best values and {}\n", found->share,
                             fmt::join(reference, ", "));
    }
    return fmt::format("the front: {} of {} that no other beats in {}{}\n{}{}", front.size(),
                       counted(std::ssize(all), "individual"), fitness,
                       fmt::format(" and {}", fmt::join(std::vector(head.begin() + 2, head.end() - 2), " and ")),
                       grid.empty() ? "" : grid.text(), volume);
}

std::string outcome_words(const search::Population& population) {
    std::array<std::size_t, words_of(search::Outcome{}).size()> counts{};
    std::size_t violations = 0;
    for (const auto& [id, individual] : population.individuals()) {
        ++counts.at(static_cast<std::size_t>(individual.outcome));
        violations += individual.ranks_by_loss() && individual.violation > 0 ? 1 : 0;
    }
    std::vector<std::string> words;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts.at(i) > 0) {
            words.push_back(fmt::format("{} {}", counts.at(i), word(static_cast<search::Outcome>(i))));
        }
    }
    return words.empty() ? "none yet"
                         : fmt::format("{}{}", fmt::join(words, ", "),
                                       violations > 0 ? fmt::format("; {} break search.limits", violations) : "");
}

std::string training_table(const search::Space& space, const search::Population& population, double now,
                           std::size_t most) {
    std::vector<const search::Individual*> training;
    for (const auto& [id, one] : population.individuals()) {
        if (!one.finished_training() && one.attempt.worker >= 0) {
            training.push_back(&one);
        }
    }
    std::sort(training.begin(), training.end(), [](const auto* a, const auto* b) {
        return std::pair(a->attempt.worker, a->id) < std::pair(b->attempt.worker, b->id);
    });
    Grid grid({"worker", "id", "for", "genes"});
    for (std::size_t i = 0; i < std::min(most, training.size()); ++i) {
        const search::Individual& one = *training[i];
        grid.add({std::to_string(one.attempt.worker), to_text(one.id),
                  one.started > 0 ? duration_text(std::max(0.0, now - one.started)) : "-",
                  search::genome_text(space, one.genome)});
    }
    return fmt::format("{} in training{}\n{}", training.size(),
                       training.size() > most ? fmt::format(", the first {}", most) : "",
                       grid.empty() ? "" : grid.text());
}

std::string worker_table(const store::ArchiveFacts& facts) {
    Grid grid({"worker", "island", "node", "device", "ranks", "threads", "evaluations", "up", "busy"});
    const std::uint32_t last = facts.reports.empty() ? 0 : facts.reports.rbegin()->first.first;
    double up = 0;
    double busy = 0;
    for (const auto& [key, report] : facts.reports) {
        if (key.first != last) {
            continue;
        }
        up += report.up_seconds;
        busy += report.busy_seconds;
        grid.add({std::to_string(report.worker), std::to_string(report.island), report.node, report.device,
                  std::to_string(report.ranks), std::to_string(report.threads), std::to_string(report.evaluations),
                  duration_text(report.up_seconds),
                  report.up_seconds > 0 ? percent(report.busy_seconds / report.up_seconds) : "-"});
    }
    if (grid.empty()) {
        return "workers: no report yet\n";
    }
    const std::string mean = up > 0 ? fmt::format(", busy {} of the time", percent(busy / up)) : "";
    return fmt::format("workers of start {}{}\n{}", last + 1, mean, grid.text());
}

std::string start_list(const store::ArchiveFacts& facts, std::size_t count) {
    const std::size_t all = facts.starts.size();
    std::string text;
    for (std::size_t i = all - std::min(all, count); i < all; ++i) {
        const store::Start& start = facts.starts[i];
        std::vector<std::string> parts;
        const auto add = [&parts](const char* what, const std::string& value) {
            if (!value.empty()) {
                parts.push_back(fmt::format("{} {}", what, printable_line(value)));
            }
        };
        add("job", start.job.empty() || start.cluster.empty() ? start.job : start.job + " on " + start.cluster);
        add("nodes", start.node_list);
        add("deadline", start.deadline > 0 ? date_and_time(start.deadline) : "");
        add("log", start.log);
        if (!parts.empty()) {
            text += fmt::format("  start {}  {}  {}\n", start.restart + 1, date_and_time(start.began),
                                fmt::join(parts, ", "));
        }
    }
    return text.empty() ? "" : "starts\n" + text + "\n";
}

std::string event_list(const store::ArchiveFacts& facts, std::size_t count) {
    const std::size_t all = facts.events.size();
    const std::size_t shown = std::min(all, count);
    std::string text = all > shown ? fmt::format("the last {} of {} events\n", shown, all) : "events\n";
    for (std::size_t i = all - shown; i < all; ++i) {
        const search::Event& event = facts.events[i];
        text +=
            fmt::format("  {}  worker {}  {}: {}\n", date_and_time(event.time), event.worker, event.kind, event.text);
    }
    return text;
}

double evaluations_per_hour(const store::ArchiveFacts& facts) {
    const double seconds = seconds_of_run(facts);
    std::int64_t evaluations = 0;
    for (const auto& [key, report] : facts.reports) {
        evaluations += report.evaluations;
    }
    return seconds > 0 ? static_cast<double>(evaluations) * 3600 / seconds : 0;
}

std::string objectives_text(const Competition& competition) {
    std::string text = competition.measure.title;
    for (const search::Cost& cost : competition.costs) {
        text += fmt::format(" and {}", to_text(cost));
    }
    return text;
}

std::string overview(const store::Recovered& recovered, const std::string& run, const Top& top,
                     const Competition& competition) {
    const search::Population population = population_of(recovered, competition);
    const std::string& fitness = competition.measure.name;
    const std::string beside = front_table(recovered.space, population, competition.costs, fitness) +
                               final_table(recovered.space, population, competition.final_choice, fitness);
    std::string text = heading(recovered, population, run, competition) + "outcomes: " + outcome_words(population) +
                       search::Outcomes(population).problems() + "\n\n" +
                       best_table(recovered.space, population, recovered.facts, top, fitness) +
                       (beside.empty() ? "" : "\n" + beside) + "\n" + worker_table(recovered.facts) + "\n" +
                       start_list(recovered.facts, shown_starts) + event_list(recovered.facts, shown_events);
    if (!recovered.problems.empty()) {
        text += "\nproblems\n";
        for (const std::string& problem : recovered.problems) {
            text += "  " + problem + "\n";
        }
    }
    return text;
}

}  // namespace finch::report
