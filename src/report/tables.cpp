#include "finch/report/tables.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace finch::report {
namespace {

constexpr std::size_t events_shown = 8;

std::string number(double value, const char* style = "{:.6g}") {
    return std::isfinite(value) ? fmt::format(fmt::runtime(style), value) : "-";
}

search::Population merged(const store::Recovered& run) {
    search::Population population(search::ExchangeKind::none, std::max(1, run.facts.islands));
    for (const search::Record& record : run.records) {
        population.merge(record);
    }
    return population;
}

std::string counts_text(const search::Population& population) {
    std::array<std::size_t, search::outcome_names.size()> counts{};
    for (const auto& [id, individual] : population.individuals()) {
        ++counts[static_cast<std::size_t>(individual.outcome)];
    }
    std::string text;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] > 0) {
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[i], search::outcome_names[i]);
        }
    }
    return text.empty() ? "nothing yet" : text;
}

/// Evaluations per hour of training time over all starts.
double hourly(const store::ArchiveFacts& facts) {
    double evaluations = 0;
    std::map<std::uint32_t, double> longest;
    for (const auto& [key, report] : facts.reports) {
        evaluations += static_cast<double>(report.evaluations);
        longest[key.first] = std::max(longest[key.first], report.up_seconds);
    }
    double seconds = 0;
    for (const auto& [restart, up] : longest) {
        seconds += up;
    }
    return seconds > 0 ? evaluations * 3600 / seconds : std::nan("");
}

std::string workers_text(const store::ArchiveFacts& facts) {
    std::string text = fmt::format("{:>7} {:>7} {:>7} {:>6} {:>8} {:>12} {:>12}  {}\n", "start", "worker", "island",
                                   "ranks", "threads", "evaluations", "utilisation", "place");
    for (const auto& [key, report] : facts.reports) {
        const double busy = report.up_seconds > 0 ? 100 * report.busy_seconds / report.up_seconds : std::nan("");
        text += fmt::format("{:>7} {:>7} {:>7} {:>6} {:>8} {:>12} {:>10} %  {}, {}\n", report.restart + 1,
                            report.worker, report.island, report.ranks, report.threads, report.evaluations,
                            number(busy, "{:.1f}"), report.node, report.device);
    }
    return text;
}

std::string events_text(const std::vector<search::Event>& events) {
    std::string text;
    const std::size_t first = events.size() > events_shown ? events.size() - events_shown : 0;
    for (std::size_t i = first; i < events.size(); ++i) {
        text += fmt::format("  {}  {}: {}\n", date_and_time(events[i].time), events[i].kind, events[i].text);
    }
    return text;
}

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) {
        return text;
    }
    std::string copy = "\"";
    for (const char c : text) {
        copy += c == '"' ? "\"\"" : std::string(1, c);
    }
    return copy + "\"";
}

std::string csv_line(const search::Space& space, const search::Individual& one) {
    std::string line =
        fmt::format("{},{},{},{},{},{},{},{:.17g},{:.17g},{},{},{:.6f},{:.6f},{:.6g},{},{},{},{},{},{}",
                    to_text(one.id), one.island, one.generation, to_text(one.parents[0]), to_text(one.parents[1]),
                    search::operator_names[static_cast<std::size_t>(one.bred_by)],
                    search::outcome_names[static_cast<std::size_t>(one.outcome)], one.loss, one.accuracy, one.epochs,
                    one.best_epoch, one.started, one.finished, one.samples_per_second, one.ranks, one.threads,
                    one.batch_size, quoted(one.node), quoted(one.device), quoted(one.problem));
    for (std::size_t gene = 0; gene < space.size(); ++gene) {
        line += "," + quoted(search::value_text(space.genes[gene], one.genome.at(gene)));
    }
    return line + "\n";
}

}  // namespace

std::string best_table(const search::Space& space, const search::Population& population,
                       const store::ArchiveFacts& facts, int top) {
    std::vector<std::vector<const search::Individual*>> born(static_cast<std::size_t>(std::max(1, facts.islands)));
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.ranks_by_loss()) {
            born[static_cast<std::size_t>(population.island_now(individual.island)) % born.size()].push_back(
                &individual);
        }
    }
    std::string text;
    for (std::size_t island = 0; island < born.size(); ++island) {
        auto& individuals = born[island];
        std::sort(individuals.begin(), individuals.end(),
                  [](const auto* a, const auto* b) { return search::better(*a, *b); });
        individuals.resize(std::min(individuals.size(), static_cast<std::size_t>(top)));
        text += fmt::format("Island {}: best individuals\n{:>12} {:>12} {:>10} {:>7} {:>9}  {}\n", island, "id", "loss",
                            "accuracy", "epochs", "seconds", "genes");
        for (const search::Individual* one : individuals) {
            text +=
                fmt::format("{:>12} {:>12} {:>10} {:>7} {:>9}  {}\n", to_text(one->id), number(one->loss),
                            number(100 * one->accuracy, "{:.2f} %"), one->epochs,
                            number(one->finished - one->started, "{:.1f}"), search::genome_text(space, one->genome));
        }
    }
    return text;
}

std::string overview(const store::Recovered& run, const std::string& name, int top) {
    const search::Population population = merged(run);
    std::string text = fmt::format("{}: {}, {} start{}, seed {}\n", name, run.facts.state, run.facts.restarts + 1,
                                   run.facts.restarts == 0 ? "" : "s", run.facts.seed);
    text += fmt::format("{} individuals{}: {}\n", population.size(),
                        run.facts.budget_evaluations >= 0 ? fmt::format(" of {}", run.facts.budget_evaluations) : "",
                        counts_text(population));
    text += fmt::format("{} evaluations/h\n\n", number(hourly(run.facts), "{:.0f}"));
    text += best_table(run.space, population, run.facts, top);
    text += "\nWorkers\n" + workers_text(run.facts) + "\nEvents\n" + events_text(run.facts.events);
    for (const std::string& problem : run.problems) {
        text += "problem: " + problem + "\n";
    }
    return text;
}

std::string csv(const store::Recovered& run) {
    const search::Population population = merged(run);
    std::string text =
        "id,island,generation,parent_1,parent_2,operator,outcome,loss,accuracy,epochs,best_epoch,started,finished,"
        "samples_per_second,ranks,threads,batch_size,node,device,problem";
    for (const search::Gene& gene : run.space.genes) {
        text += "," + quoted(gene.name);
    }
    text += "\n";
    for (const auto& [id, individual] : population.individuals()) {
        text += csv_line(run.space, individual);
    }
    return text;
}

}  // namespace finch::report
