#include "archive_columns.hpp"

#include "finch/base/error.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <type_traits>

namespace finch::store {
namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<std::int64_t>;
using Smalls = std::vector<std::int32_t>;
using Ids = std::vector<std::uint64_t>;
using Texts = std::vector<std::string>;
using hdf5::column;
using hdf5::EnumValues;

/// One value of each of `from`.
template <class Values, class From, class Get>
hdf5::Column made(const std::string& name, const From& from, Get get) {
    Values values;
    values.reserve(from.size());
    for (const auto& one : from) {
        values.push_back(static_cast<typename Values::value_type>(get(one)));
    }
    return {name, std::move(values)};
}

template <class From, class Names, class Get>
hdf5::Column made_enum(const std::string& name, const Names& names, const From& from, Get get) {
    EnumValues values;
    values.names.assign(names.begin(), names.end());
    for (const auto& one : from) {
        values.values.push_back(static_cast<std::int32_t>(get(one)));
    }
    return {name, std::move(values)};
}

using Pointers = std::vector<const search::Individual*>;
using Pointer = const search::Individual*;

hdf5::Column gene_column(const search::Gene& gene, std::size_t index, const Pointers& all) {
    const auto value = [index](Pointer one) { return one->genome.at(index); };
    if (const auto* choice = std::get_if<search::ChoiceGene>(&gene.kind)) {
        return made_enum(gene.name, choice->options, all, value);
    }
    return std::holds_alternative<search::IntGene>(gene.kind) ? made<Ints>(gene.name, all, value)
                                                              : made<Doubles>(gene.name, all, value);
}

double gene_value(const hdf5::Column& column, std::size_t row) {
    return std::visit(
        [row](const auto& values) -> double {
            using Values = std::decay_t<decltype(values)>;
            if constexpr (std::is_same_v<Values, EnumValues>) {
                return values.values.at(row);
            } else if constexpr (std::is_same_v<Values, Texts>) {
                throw FileError("a gene's column holds texts");
            } else {
                return static_cast<double>(values.at(row));
            }
        },
        column.values);
}

/// Fills one field of each individual from a column.
template <class Values, class Set>
void fill(const Columns& columns, const std::string& name, std::vector<search::Individual>& all, Set set) {
    const auto& values = column<Values>(columns, name);
    for (std::size_t i = 0; i < all.size(); ++i) {
        set(all[i], values.at(i));
    }
}

template <class Enum, std::size_t count>
Enum named(const EnumValues& values, std::size_t row, const std::array<std::string_view, count>& names) {
    const std::string& word = values.names.at(static_cast<std::size_t>(values.values.at(row)));
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
        throw FileError("'" + word + "' is a word that this version does not know");
    }
    return static_cast<Enum>(found - names.begin());
}

std::string joined(const std::vector<std::string>& options) {
    std::string text;
    for (const std::string& option : options) {
        text += text.empty() ? option : "\n" + option;
    }
    return text;
}

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> found;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        found.push_back(line);
    }
    return found;
}

constexpr std::array<std::string_view, 3> gene_kinds{"real", "int", "choice"};
constexpr std::array<std::string_view, 2> gene_scales{"linear", "log"};

}  // namespace

Columns individual_columns(const search::Space& space, const Pointers& all) {
    Columns columns{
        made<Ids>("id", all, [](Pointer i) { return i->id.value; }),
        made<Smalls>("island", all, [](Pointer i) { return i->island; }),
        made<Smalls>("worker", all, [](Pointer i) { return i->id.worker(); }),
        made<Ints>("sequence", all, [](Pointer i) { return i->id.sequence(); }),
        made<Smalls>("restart", all, [](Pointer i) { return i->id.restart(); }),
        made<Smalls>("generation", all, [](Pointer i) { return i->generation; }),
        made<Ids>("parent_1", all, [](Pointer i) { return i->parents[0].value; }),
        made<Ids>("parent_2", all, [](Pointer i) { return i->parents[1].value; }),
        made_enum("operator", search::operator_names, all, [](Pointer i) { return i->bred_by; }),
        made_enum("outcome", search::outcome_names, all, [](Pointer i) { return i->outcome; }),
        made<Doubles>("loss", all, [](Pointer i) { return i->loss; }),
        made<Doubles>("accuracy", all, [](Pointer i) { return i->accuracy; }),
        made<Smalls>("epochs", all, [](Pointer i) { return i->epochs; }),
        made<Smalls>("best_epoch", all, [](Pointer i) { return i->best_epoch; }),
        made<Doubles>("born", all, [](Pointer i) { return i->born; }),
        made<Doubles>("started", all, [](Pointer i) { return i->started; }),
        made<Doubles>("finished", all, [](Pointer i) { return i->finished; }),
        made<Doubles>("samples_per_second", all, [](Pointer i) { return i->samples_per_second; }),
        made<Smalls>("ranks", all, [](Pointer i) { return i->ranks; }),
        made<Smalls>("threads", all, [](Pointer i) { return i->threads; }),
        made<Ints>("batch_size", all, [](Pointer i) { return i->batch_size; }),
        made<Texts>("node", all, [](Pointer i) { return i->node; }),
        made<Texts>("device", all, [](Pointer i) { return i->device; }),
        made<Texts>("problem", all, [](Pointer i) { return i->problem; }),
    };
    for (std::size_t gene = 0; gene < space.size(); ++gene) {
        columns.push_back(gene_column(space.genes[gene], gene, all));
    }
    return columns;
}

std::vector<search::Individual> individuals_of(const search::Space& space, const Columns& columns) {
    using search::Individual;
    std::vector<Individual> all(column<Ids>(columns, "id").size());
    fill<Ids>(columns, "id", all, [](Individual& i, auto v) { i.id.value = v; });
    fill<Smalls>(columns, "island", all, [](Individual& i, auto v) { i.island = v; });
    fill<Smalls>(columns, "generation", all, [](Individual& i, auto v) { i.generation = v; });
    fill<Ids>(columns, "parent_1", all, [](Individual& i, auto v) { i.parents[0].value = v; });
    fill<Ids>(columns, "parent_2", all, [](Individual& i, auto v) { i.parents[1].value = v; });
    fill<Doubles>(columns, "loss", all, [](Individual& i, auto v) { i.loss = v; });
    fill<Doubles>(columns, "accuracy", all, [](Individual& i, auto v) { i.accuracy = v; });
    fill<Smalls>(columns, "epochs", all, [](Individual& i, auto v) { i.epochs = v; });
    fill<Smalls>(columns, "best_epoch", all, [](Individual& i, auto v) { i.best_epoch = v; });
    fill<Doubles>(columns, "born", all, [](Individual& i, auto v) { i.born = v; });
    fill<Doubles>(columns, "started", all, [](Individual& i, auto v) { i.started = v; });
    fill<Doubles>(columns, "finished", all, [](Individual& i, auto v) { i.finished = v; });
    fill<Doubles>(columns, "samples_per_second", all, [](Individual& i, auto v) { i.samples_per_second = v; });
    fill<Smalls>(columns, "ranks", all, [](Individual& i, auto v) { i.ranks = v; });
    fill<Smalls>(columns, "threads", all, [](Individual& i, auto v) { i.threads = v; });
    fill<Ints>(columns, "batch_size", all, [](Individual& i, auto v) { i.batch_size = v; });
    fill<Texts>(columns, "node", all, [](Individual& i, const auto& v) { i.node = v; });
    fill<Texts>(columns, "device", all, [](Individual& i, const auto& v) { i.device = v; });
    fill<Texts>(columns, "problem", all, [](Individual& i, const auto& v) { i.problem = v; });
    const auto& operators = column<EnumValues>(columns, "operator");
    const auto& outcomes = column<EnumValues>(columns, "outcome");
    const std::size_t first_gene = columns.size() - space.size();
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].bred_by = named<search::Operator>(operators, i, search::operator_names);
        all[i].outcome = named<search::Outcome>(outcomes, i, search::outcome_names);
        for (std::size_t gene = 0; gene < space.size(); ++gene) {
            all[i].genome.push_back(gene_value(columns[first_gene + gene], i));
        }
    }
    return all;
}

Columns curve_columns(const Pointers& individuals) {
    struct Line {
        search::Id id;
        search::EpochMetrics epoch;
    };
    std::vector<Line> all;
    for (Pointer individual : individuals) {
        for (const search::EpochMetrics& epoch : individual->curve) {
            all.push_back({individual->id, epoch});
        }
    }
    return {
        made<Ids>("individual", all, [](const Line& l) { return l.id.value; }),
        made<Smalls>("epoch", all, [](const Line& l) { return l.epoch.epoch; }),
        made<Doubles>("training_loss", all, [](const Line& l) { return l.epoch.training_loss; }),
        made<Doubles>("training_accuracy", all, [](const Line& l) { return l.epoch.training_accuracy; }),
        made<Doubles>("validation_loss", all, [](const Line& l) { return l.epoch.validation_loss; }),
        made<Doubles>("validation_accuracy", all, [](const Line& l) { return l.epoch.validation_accuracy; }),
        made<Doubles>("learning_rate", all, [](const Line& l) { return l.epoch.learning_rate; }),
        made<Doubles>("seconds", all, [](const Line& l) { return l.epoch.seconds; }),
    };
}

void add_curves(const Columns& columns, std::vector<search::Individual>& individuals) {
    const auto& ids = column<Ids>(columns, "individual");
    const auto& epochs = column<Smalls>(columns, "epoch");
    const auto value = [&](const char* name) -> const Doubles& { return column<Doubles>(columns, name); };
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto owner =
            std::lower_bound(individuals.begin(), individuals.end(), ids[i],
                             [](const search::Individual& one, std::uint64_t id) { return one.id.value < id; });
        if (owner == individuals.end() || owner->id.value != ids[i]) {
            throw FileError("a curve belongs to no individual");
        }
        owner->curve.push_back({epochs.at(i), 0, value("training_loss").at(i), value("training_accuracy").at(i),
                                value("validation_loss").at(i), value("validation_accuracy").at(i),
                                value("learning_rate").at(i), value("seconds").at(i)});
    }
}

Columns gene_columns(const search::Space& space) {
    using search::Gene;
    const auto low = [](const Gene& gene) {
        const auto* whole = std::get_if<search::IntGene>(&gene.kind);
        const auto* real = std::get_if<search::RealGene>(&gene.kind);
        return whole != nullptr ? static_cast<double>(whole->low) : real != nullptr ? real->low : 0;
    };
    const auto high = [](const Gene& gene) {
        const auto* whole = std::get_if<search::IntGene>(&gene.kind);
        const auto* real = std::get_if<search::RealGene>(&gene.kind);
        return whole != nullptr ? static_cast<double>(whole->high) : real != nullptr ? real->high : 0;
    };
    const auto scale = [](const Gene& gene) {
        const auto* real = std::get_if<search::RealGene>(&gene.kind);
        return real != nullptr ? real->scale : search::Scale::linear;
    };
    const auto options = [](const Gene& gene) {
        const auto* choice = std::get_if<search::ChoiceGene>(&gene.kind);
        return choice != nullptr ? joined(choice->options) : "";
    };
    return {
        made<Texts>("name", space.genes, [](const Gene& gene) { return gene.name; }),
        made_enum("kind", gene_kinds, space.genes, [](const Gene& gene) { return gene.kind.index(); }),
        made<Doubles>("low", space.genes, low),
        made<Doubles>("high", space.genes, high),
        made_enum("scale", gene_scales, space.genes, scale),
        made<Texts>("options", space.genes, options),
    };
}

search::Space space_of(const Columns& columns) {
    search::Space space;
    const auto& names = column<Texts>(columns, "name");
    for (std::size_t i = 0; i < names.size(); ++i) {
        const double low = column<Doubles>(columns, "low").at(i);
        const double high = column<Doubles>(columns, "high").at(i);
        switch (named<int>(column<EnumValues>(columns, "kind"), i, gene_kinds)) {
            case 0: {
                const auto scale = named<search::Scale>(column<EnumValues>(columns, "scale"), i, gene_scales);
                space.genes.push_back({names[i], search::RealGene{low, high, scale}});
                break;
            }
            case 1:
                space.genes.push_back(
                    {names[i], search::IntGene{static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)}});
                break;
            default:
                space.genes.push_back({names[i], search::ChoiceGene{lines(column<Texts>(columns, "options").at(i))}});
        }
    }
    return space;
}

Columns event_columns(const std::vector<search::Event>& events) {
    using search::Event;
    return {
        made<Doubles>("time", events, [](const Event& e) { return e.time; }),
        made<Smalls>("worker", events, [](const Event& e) { return e.worker; }),
        made<Texts>("kind", events, [](const Event& e) { return e.kind; }),
        made<Texts>("text", events, [](const Event& e) { return e.text; }),
    };
}

std::vector<search::Event> events_of(const Columns& columns) {
    std::vector<search::Event> events(column<Doubles>(columns, "time").size());
    for (std::size_t i = 0; i < events.size(); ++i) {
        events[i] = {column<Doubles>(columns, "time")[i], column<Smalls>(columns, "worker").at(i),
                     column<Texts>(columns, "kind").at(i), column<Texts>(columns, "text").at(i)};
    }
    return events;
}

Columns report_columns(const std::vector<search::WorkerReport>& reports) {
    using search::WorkerReport;
    return {
        made<Ints>("restart", reports, [](const WorkerReport& r) { return r.restart; }),
        made<Smalls>("worker", reports, [](const WorkerReport& r) { return r.worker; }),
        made<Smalls>("island", reports, [](const WorkerReport& r) { return r.island; }),
        made<Smalls>("ranks", reports, [](const WorkerReport& r) { return r.ranks; }),
        made<Smalls>("threads", reports, [](const WorkerReport& r) { return r.threads; }),
        made<Texts>("node", reports, [](const WorkerReport& r) { return r.node; }),
        made<Texts>("device", reports, [](const WorkerReport& r) { return r.device; }),
        made<Doubles>("time", reports, [](const WorkerReport& r) { return r.time; }),
        made<Doubles>("up_seconds", reports, [](const WorkerReport& r) { return r.up_seconds; }),
        made<Doubles>("busy_seconds", reports, [](const WorkerReport& r) { return r.busy_seconds; }),
        made<Ints>("evaluations", reports, [](const WorkerReport& r) { return r.evaluations; }),
    };
}

std::vector<search::WorkerReport> reports_of(const Columns& columns) {
    std::vector<search::WorkerReport> reports(column<Ints>(columns, "restart").size());
    for (std::size_t i = 0; i < reports.size(); ++i) {
        search::WorkerReport& report = reports[i];
        report.restart = static_cast<std::uint32_t>(column<Ints>(columns, "restart")[i]);
        report.worker = column<Smalls>(columns, "worker").at(i);
        report.island = column<Smalls>(columns, "island").at(i);
        report.ranks = column<Smalls>(columns, "ranks").at(i);
        report.threads = column<Smalls>(columns, "threads").at(i);
        report.node = column<Texts>(columns, "node").at(i);
        report.device = column<Texts>(columns, "device").at(i);
        report.time = column<Doubles>(columns, "time").at(i);
        report.up_seconds = column<Doubles>(columns, "up_seconds").at(i);
        report.busy_seconds = column<Doubles>(columns, "busy_seconds").at(i);
        report.evaluations = column<Ints>(columns, "evaluations").at(i);
    }
    return reports;
}

}  // namespace finch::store
