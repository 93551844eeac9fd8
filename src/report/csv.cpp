#include "finch/report/csv.hpp"

#include "finch/base/format.hpp"

#include "metrics.hpp"
#include "population_of.hpp"

#include <cmath>
#include <map>

namespace finch::report {

std::string csv_cell(const std::string& text) {
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

namespace {

std::string exact(double value) {
    return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

void append(std::string& out, const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
        out += i > 0 ? "," : "";
        out += csv_cell(cells[i]);
    }
    out += "\n";
}

/// Returns a value as the text of a cell: "crossover", "0.3.17", "0.25".
template <class T>
std::string text_of(const T& value) {
    if constexpr (EnumWithWords<T>) {
        return std::string(word(value));
    } else if constexpr (std::same_as<T, search::Id>) {
        return value == search::Id{} ? "" : to_text(value);
    } else if constexpr (std::same_as<T, std::string>) {
        return value;
    } else if constexpr (std::same_as<T, double>) {
        return exact(value);
    } else {
        return std::to_string(value);
    }
}

/// Returns the column names: the columns of /individuals, `problem`, then the `metrics` at the best epoch. The genes
/// follow the column `id`, `islands` follows `island`, and `loss.measure` follows `loss`.
std::vector<std::string> head(const search::Space& space, const std::vector<std::string>& metrics) {
    std::vector<std::string> names;
    for_each_column<search::Individual>([&](const Column& column, const auto&) {
        names.push_back(column.name);
        for (std::size_t i = 0; column.name == "id" && i < space.size(); ++i) {
            names.push_back(space.genes[i].name);
        }
        if (column.name == "island") {
            names.emplace_back("islands");
        }
        if (column.name == "loss") {
            names.emplace_back("loss.measure");
        }
    });
    names.emplace_back("problem");
    for (const std::string& name : metrics) {
        names.push_back("metric." + name);
    }
    return names;
}

std::vector<std::string> line(const search::Space& space, const search::Individual& one, const std::string& islands,
                              const search::Measure& measure, const std::vector<std::string>& metrics) {
    std::vector<std::string> cells;
    const std::vector<bool> active = search::active_genes(space, one.genome);
    for_each_column<search::Individual>([&](const Column& column, const auto& get) {
        cells.push_back(text_of(get(one)));
        for (std::size_t i = 0; column.name == "id" && i < space.size(); ++i) {
            cells.push_back(active[i] ? search::value_text(space.genes[i], one.genome.at(i)) : "");
        }
        if (column.name == "island") {
            cells.push_back(islands);
        }
        if (column.name == "loss") {
            cells.push_back(measure.title);
        }
    });
    cells.push_back(one.problem);
    for (const double value : metrics_of(by_epoch(one.metrics), one.best_epoch, metrics)) {
        cells.push_back(exact(value));
    }
    return cells;
}

/// Returns the islands on which each individual is active, as "0 2".
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

std::string csv(const store::Recovered& recovered, const Competition& competition) {
    const search::Population population = population_of(recovered, competition);
    std::vector<const search::Individual*> all;
    for (const auto& [id, individual] : population.individuals()) {
        all.push_back(&individual);
    }
    const std::vector<std::string> metrics = metric_names(all);
    std::string out;
    append(out, head(recovered.space, metrics));
    const auto islands = islands_by_id(population);
    for (const search::Individual* one : all) {
        const auto found = islands.find(one->id);
        append(out,
               line(recovered.space, *one, found != islands.end() ? found->second : "", competition.measure, metrics));
    }
    return out;
}

}  // namespace finch::report
