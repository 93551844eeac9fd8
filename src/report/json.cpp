#include "finch/report/json.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/error.hpp"
#include "finch/base/fields.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/report/status.hpp"
#include "finch/search/gene.hpp"
#include "finch/search/individual.hpp"

#include "joules.hpp"
#include "population_of.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace finch::report {
namespace {

/// A writer of JSON. Writes NaN and Infinity as words, which Python's json module accepts.
class Json {
public:
    using Writer = rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                                     rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>;

    void begin() { writer_.StartObject(); }
    void begin(std::string_view key) {
        name(key);
        begin();
    }
    void end() { writer_.EndObject(); }
    void begin_list(std::string_view key) {
        name(key);
        writer_.StartArray();
    }
    void end_list() { writer_.EndArray(); }

    void value(double number) { writer_.Double(number); }
    void value(std::int64_t number) { writer_.Int64(number); }
    void value(std::int32_t number) { writer_.Int(number); }
    void value(std::uint32_t number) { writer_.Uint(number); }
    void value(bool claim) { writer_.Bool(claim); }
    void value(std::string_view text) { writer_.String(text.data(), static_cast<rapidjson::SizeType>(text.size())); }
    void value(const char* text) { value(std::string_view(text)); }
    void null(std::string_view key) {
        name(key);
        writer_.Null();
    }
    template <class T>
    void member(std::string_view key, const T& what) {
        name(key);
        value(what);
    }
    void object(std::string_view key, const std::string& json) {
        name(key);
        writer_.RawValue(json.data(), json.size(), rapidjson::kObjectType);
    }
    /// Writes an object with the active genes. Each value has the JSON type of its gene.
    void genes(std::string_view key, const search::Space& space, const search::Genome& genome) {
        begin(key);
        const std::vector<bool> active = search::active_genes(space, genome);
        for (std::size_t i = 0; i < space.size(); ++i) {
            if (active[i]) {
                gene(space.genes[i], genome[i]);
            }
        }
        end();
    }

    /// Returns the text written since the last call.
    [[nodiscard]] std::string take() {
        std::string text(buffer_.GetString(), buffer_.GetSize());
        buffer_.Clear();
        writer_.Reset(buffer_);
        return text;
    }

private:
    void gene(const search::Gene& gene, double what) {
        name(gene.name);
        if (std::holds_alternative<search::RealGene>(gene.kind)) {
            value(what);
        } else if (std::holds_alternative<search::IntGene>(gene.kind)) {
            value(static_cast<std::int64_t>(what));
        } else {
            const std::string text = search::value_text(gene, what);
            std::get<search::ChoiceGene>(gene.kind).is_number
                ? writer_.RawValue(text.data(), text.size(), rapidjson::kNumberType)
                : writer_.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
        }
    }
    void name(std::string_view key) { writer_.Key(key.data(), static_cast<rapidjson::SizeType>(key.size())); }

    rapidjson::StringBuffer buffer_;
    Writer writer_{buffer_};
};

/// Writes null for NaN and Infinity, as standard JSON requires.
void member(Json& json, std::string_view name, double value) {
    if (std::isfinite(value)) {
        json.member(name, value);
    } else {
        json.null(name);
    }
}

template <class T>
void column(Json& json, const Column& column, const T& value) {
    if constexpr (EnumWithWords<T>) {
        json.member(column.name, word(value));
    } else if constexpr (std::same_as<T, search::Id>) {
        if (value == search::Id{}) {
            json.null(column.name);
        } else {
            json.member(column.name, std::string_view(to_text(value)));
        }
    } else if constexpr (std::same_as<T, std::string>) {
        json.member(column.name, std::string_view(value));
    } else if constexpr (std::same_as<T, double>) {
        member(json, column.name, value);
    } else if constexpr (std::same_as<T, std::uint64_t>) {
        json.member(column.name, std::string_view(fmt::format("{:016x}", value)));  // run numbers exceed a double
    } else {
        json.member(column.name, value);
    }
}

/// Writes the columns of T into an open object.
template <class T>
void columns(Json& json, const T& object) {
    for_each_column<T>([&](const Column& one, const auto& get) { column(json, one, get(object)); });
}

void individual(Json& json, const search::Space& space, const search::Individual& one) {
    columns(json, one);
    json.member("problem", std::string_view(one.problem));
    json.genes("genes", space, one.genome);
}

/// Writes the learning curve and the program's metrics of an individual into an open object.
void histories(Json& json, const search::Individual& one) {
    const auto list = [&json](std::string_view name, const auto& rows) {
        json.begin_list(name);
        for (const auto& row : rows) {
            json.begin();
            columns(json, row);
            json.end();
        }
        json.end_list();
    };
    list("curve", one.curve);
    list("metrics", one.metrics);
}

void best_of(Json& json, const search::Space& space, const Individuals& best) {
    json.begin_list("best");
    for (const search::Individual* const one : best) {
        json.begin();
        individual(json, space, *one);
        json.end();
    }
    json.end_list();
}

/// Writes the individuals that enlarged the hypervolume, in the order of their ends, each with the hypervolume after it
/// as a share of the box of `final`, the hypervolume of the whole front.
void course(Json& json, const search::Population& population, const std::vector<search::Cost>& costs,
            const search::FrontVolume& final) {
    std::vector<double> reference = final.reference;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        reference[i + 1] *= costs[i].is_maximised ? -1 : 1;
    }
    Individuals all = ranked(population);
    std::erase_if(all, [](const auto* one) { return !one->is_complete() || one->violation > 0; });
    std::ranges::sort(all, {}, [](const auto* one) { return std::pair(one->finished, one->id); });
    std::vector<search::ObjectiveValues> enlarging;
    std::vector<double> volumes;  // after each of `enlarging`
    for (const search::Individual* const one : all) {
        enlarging.push_back(search::point_of(*one, costs));
        const double volume = search::hypervolume(enlarging, reference);
        if (volume > (volumes.empty() ? 0 : volumes.back())) {
            volumes.push_back(volume);
        } else {
            enlarging.pop_back();
        }
    }
    json.begin_list("course");
    for (std::size_t i = 0; i < volumes.size(); ++i) {
        json.begin();
        json.member("id", std::string_view(to_text(enlarging[i].id)));
        json.member("share", final.share * volumes[i] / volumes.back());
        json.end();
    }
    json.end_list();
}

/// Writes the hypervolume of the front of a search with several objectives; null if the front has none.
void hypervolume(Json& json, const search::Population& population, const std::vector<search::Cost>& costs) {
    const auto front = search::pareto_front(ranked(population), costs);
    const auto volume = search::volume_of(front, costs);
    if (!volume) {
        json.null("hypervolume");
        return;
    }
    json.begin("hypervolume");
    json.member("share", volume->share);
    json.begin("reference");
    json.member("loss", volume->reference.front());
    for (std::size_t i = 0; i < costs.size(); ++i) {
        json.member(to_text(costs[i].as_reported()), volume->reference[i + 1]);
    }
    json.end();
    if (costs.size() == 1) {
        course(json, population, costs, *volume);
    }
    json.end();
}

/// Writes the name and the title of the measure that all losses use.
void measure_of(Json& json, const search::Measure& measure) {
    json.begin("measure");
    json.member("name", std::string_view(measure.name));
    json.member("title", std::string_view(measure.title));
    json.end();
}

/// Writes all starts, and the workers of the last start.
void starts_and_workers(Json& json, const store::ArchiveFacts& facts) {
    json.begin_list("start_list");
    for (const store::Start& start : facts.starts) {
        json.begin();
        columns(json, start);
        json.end();
    }
    json.end_list();
    json.begin_list("workers");
    const std::uint32_t last = facts.reports.empty() ? 0 : facts.reports.rbegin()->first.first;
    for (const auto& [key, report] : facts.reports) {
        if (key.first == last) {
            json.begin();
            columns(json, report);
            json.end();
        }
    }
    json.end_list();
}

}  // namespace

std::string run_json(const store::Recovered& recovered, const search::Space& space, const Competition& competition,
                     const std::string& run, int top, const std::string& statistics) {
    const search::Population population = population_of(recovered, competition);
    const store::ArchiveFacts& facts = recovered.facts;
    Json json;
    json.begin();
    json.member("run", std::string_view(printable(run)));  // a path may contain invalid UTF-8, JSON may not
    json.member("number", std::string_view(fmt::format("{:016x}", facts.run)));
    json.member("state", std::string_view(state_text(facts.state, population)));
    json.member("seed", std::string_view(std::to_string(facts.seed)));
    json.member("starts", facts.restarts + 1);
    json.member("evaluations", static_cast<std::int64_t>(population.evaluations()));
    json.member("budget_evaluations", facts.budget_evaluations);
    json.member("epochs", population.epochs());
    const RunJoules joules(population);
    member(json, "joules", joules.sum > 0 ? joules.sum : search::Individual::not_measured);
    json.member("unknown_joules", joules.unknown);
    json.begin("outcomes");
    std::array<std::int64_t, words_of(search::Outcome{}).size()> counts{};
    for (const auto& [id, one] : population.individuals()) {
        ++counts.at(static_cast<std::size_t>(one.outcome));
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
        json.member(word(static_cast<search::Outcome>(i)), counts.at(i));
    }
    json.end();
    measure_of(json, competition.measure);
    json.object("statistics", statistics);
    const auto count = static_cast<std::size_t>(std::max(0, top));
    best_of(json, space, first_of(ranked(population), count));
    if (!competition.costs.empty()) {
        hypervolume(json, population, competition.costs);
    }
    json.begin_list("islands");
    for (int island = 0; island < population.islands(); ++island) {
        json.begin();
        json.member("active", static_cast<std::int64_t>(population.active(island)));
        best_of(json, space, population.best(island, count));
        json.end();
    }
    json.end_list();
    starts_and_workers(json, facts);
    json.end();
    return json.take() + "\n";
}

std::string individuals_json(const store::Recovered& recovered, const search::Space& space,
                             const search::Measure& measure, const std::string& run) {
    const search::Population population = population_of(recovered);
    Json json;
    json.begin();
    json.member("run", std::string_view(printable(run)));
    json.member("number", std::string_view(fmt::format("{:016x}", recovered.facts.run)));
    measure_of(json, measure);
    json.begin_list("individuals");
    for (const auto& [id, one] : population.individuals()) {
        json.begin();
        individual(json, space, one);
        histories(json, one);
        json.end();
    }
    json.end_list();
    json.end();
    return json.take() + "\n";
}

std::string individual_json(const store::Recovered& recovered, const search::Space& space,
                            const search::Measure& measure, search::Id id, const RecipeJson& recipe) {
    const search::Population population = population_of(recovered);
    const search::Individual* const one = population.find(id);
    if (one == nullptr) {
        throw ConfigError(fmt::format("there is no individual {}", to_text(id)));
    }
    Json json;
    json.begin();
    individual(json, space, *one);
    measure_of(json, measure);
    histories(json, *one);
    if (recipe) {
        json.object("recipe", recipe(one->genome));
    }
    json.end();
    return json.take() + "\n";
}

}  // namespace finch::report
