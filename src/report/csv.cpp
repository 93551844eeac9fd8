#include "finch/report/csv.hpp"

#include "finch/base/format.hpp"

#include "population_of.hpp"

#include <cmath>
#include <map>

namespace finch::report {
namespace {

/// A cell as RFC 4180 has it: in quotes where it holds what would end it.
std::string cell(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) {
        return text;
    }
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c;
        if (c == '"') {
            quoted += c;
        }
    }
    return quoted + "\"";
}

std::string number(double value) {
    return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

std::string parent(search::Id id) {
    return id == search::Id{} ? "" : to_text(id);
}

void append(std::string& out, const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
        out += i > 0 ? "," : "";
        out += cell(cells[i]);
    }
    out += "\n";
}

std::vector<std::string> head(const search::Space& space) {
    std::vector<std::string> names{"id"};
    for (const search::Gene& gene : space.genes) {
        names.push_back(gene.name);
    }
    for (const char* name : {"outcome",          "loss",    "accuracy",   "epochs",     "best_epoch",
                             "island",           "islands", "generation", "parent_1",   "parent_2",
                             "operator",         "born",    "started",    "finished",   "samples_per_second",
                             "training_seconds", "ranks",   "threads",    "batch_size", "node",
                             "device",           "problem"}) {
        names.emplace_back(name);
    }
    return names;
}

std::vector<std::string> line(const search::Space& space, const search::Individual& one, const std::string& islands) {
    std::vector<std::string> cells{to_text(one.id)};
    for (std::size_t i = 0; i < space.size(); ++i) {
        cells.push_back(search::value_text(space.genes[i], one.genome.at(i)));
    }
    const std::vector<std::string> rest{std::string(search::outcome_names.at(static_cast<std::size_t>(one.outcome))),
                                        number(one.loss),
                                        number(one.accuracy),
                                        std::to_string(one.epochs),
                                        std::to_string(one.best_epoch),
                                        std::to_string(one.island),
                                        islands,
                                        std::to_string(one.generation),
                                        parent(one.parents[0]),
                                        parent(one.parents[1]),
                                        std::string(search::operator_names.at(static_cast<std::size_t>(one.bred_by))),
                                        number(one.born),
                                        number(one.started),
                                        number(one.finished),
                                        number(one.samples_per_second),
                                        number(one.training_seconds),
                                        std::to_string(one.ranks),
                                        std::to_string(one.threads),
                                        std::to_string(one.batch_size),
                                        one.node,
                                        one.device,
                                        one.problem};
    cells.insert(cells.end(), rest.begin(), rest.end());
    return cells;
}

/// The islands on which each individual is active: "0 2".
std::map<search::Id, std::string> islands_by_id(const search::Population& population) {
    std::map<search::Id, std::string> islands;
    for (int island = 0; island < population.islands(); ++island) {
        for (const search::Individual* one : population.best(island, population.active(island))) {
            std::string& text = islands[one->id];
            text += (text.empty() ? "" : " ") + std::to_string(island);
        }
    }
    return islands;
}

}  // namespace

std::string csv(const store::Recovered& recovered, search::ExchangeKind exchange) {
    std::string out;
    append(out, head(recovered.space));
    const search::Population population = population_of(recovered, exchange);
    const auto islands = islands_by_id(population);
    for (const auto& [id, individual] : population.individuals()) {
        const auto found = islands.find(id);
        append(out, line(recovered.space, individual, found != islands.end() ? found->second : ""));
    }
    return out;
}

}  // namespace finch::report
