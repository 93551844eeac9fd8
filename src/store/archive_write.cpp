#include "finch/base/clock.hpp"
#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/recorded.hpp"
#include "finch/store/archive.hpp"

#include "archive_layout.hpp"
#include "file_format.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

namespace finch::store {
namespace {

using search::Individual;
using Individuals = std::vector<const Individual*>;

/// HDF5 keeps a table's type in an object header of at most 64 KiB, together with other data.
constexpr std::size_t most_type_bytes = 64000;

/// An archive of up to this size is built in memory and written by a single call.
constexpr std::size_t most_bytes_in_memory = std::size_t{16} << 20;

std::int64_t whole(double value, const Individual& individual) {
    constexpr double limit = 9.2e18;
    if (!(-limit < value && value < limit) || static_cast<double>(static_cast<std::int64_t>(value)) != value) {
        throw Error(fmt::format("individual {} has {} for a gene of whole numbers", to_text(individual.id), value));
    }
    return static_cast<std::int64_t>(value);
}

/// Adds one column per gene. The configuration has already refused choices with words that an HDF5 enum does not
/// accept.
void add_genes(hdf5::TableWriter& table, const search::Space& space, const Individuals& all) {
    for (std::size_t i = 0; i < space.size(); ++i) {
        const search::Gene& gene = space.genes[i];
        if (std::holds_alternative<search::RealGene>(gene.kind)) {
            table.column(gene.name, [&all, i](std::size_t row) { return all[row]->genome[i]; });
        } else if (std::holds_alternative<search::IntGene>(gene.kind)) {
            table.column(gene.name, [&all, i](std::size_t row) { return whole(all[row]->genome[i], *all[row]); });
        } else {
            table.enumeration(gene.name, std::get<search::ChoiceGene>(gene.kind).options, [&all, i](std::size_t row) {
                return static_cast<std::int32_t>(whole(all[row]->genome[i], *all[row]));
            });
        }
    }
}

/// Returns the table of the individuals `all`, a vector that must outlive the table.
hdf5::TableWriter table_of(const search::Space& space, const Individuals& all) {
    hdf5::TableWriter table(all.size());
    table.column("restart", [&all](std::size_t row) { return all[row]->id.restart(); });
    table.column("worker", [&all](std::size_t row) { return all[row]->id.worker(); });
    table.column("sequence", [&all](std::size_t row) { return all[row]->id.sequence(); });
    add_genes(table, space, all);
    hdf5::add_columns<Individual>(table, [&all](std::size_t row) -> const Individual& { return *all[row]; });
    if (const std::size_t bytes = table.type_bytes(); bytes > most_type_bytes) {
        throw ConfigError(fmt::format(
            "search.space: the names and choices of {} genes take {} bytes of an HDF5 table's head, which holds {}; "
            "use fewer genes, fewer choices or shorter words",
            space.size(), bytes, most_type_bytes));
    }
    return table;
}

void write_individuals(hid_t file, const search::Space& space, const Individuals& all) {
    for (const Individual* individual : all) {
        if (individual->genome.size() != space.size()) {
            throw Error(fmt::format("individual {} has {} genes, the search has {}", to_text(individual->id),
                                    individual->genome.size(), space.size()));
        }
    }
    table_of(space, all).write(file, "individuals");
}

/// Writes the table /problems with the reasons of failures. Only individuals with a problem have a row, since the texts
/// may be long.
void write_problems(hid_t file, const Individuals& all) {
    Individuals some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some),
                 [](const Individual* individual) { return !individual->problem.empty(); });
    hdf5::TableWriter table(some.size());
    table.column("individual", [&some](std::size_t row) { return some[row]->id.value; });
    table.long_text("text", [&some](std::size_t row) -> const std::string& { return some[row]->problem; });
    table.write(file, "problems");
}

/// Opens the earlier archive at `path`, or its predecessor, if individuals have curves that are not in memory. Returns
/// nothing if all curves are in memory, or if no earlier archive belongs to this run.
std::optional<hdf5::Hid> open_earlier(const std::filesystem::path& path, std::uint64_t run, const Individuals& all) {
    const bool is_wanted = std::any_of(all.begin(), all.end(), [](const Individual* individual) {
        return individual->curve.empty() && individual->epochs > 0;
    });
    if (!is_wanted) {
        return std::nullopt;
    }
    for (const std::filesystem::path& place : {path, std::filesystem::path(path.string() + previous_suffix)}) {
        try {
            hdf5::Hid file = hdf5::open_file(place);
            if (hdf5::read_unsigned_attribute(file.get(), "run") == run) {
                return file;
            }
        } catch (const FileError&) {
            continue;
        }
    }
    return std::nullopt;
}

/// Returns the rows of an earlier table that belong to individuals without a curve in memory.
std::vector<hdf5::RowRange> rows_to_keep(const hdf5::LargeTable& lines, const search::Population& population) {
    std::vector<hdf5::RowRange> kept;
    std::size_t row = 0;
    std::uint64_t last = 0;  // no individual has this id
    bool is_kept = false;
    lines.visit([&](std::span<const std::uint64_t> ids) {
        for (const std::uint64_t id : ids) {
            if (id != last) {
                const Individual* owner = population.find(search::Id{id});
                is_kept = owner != nullptr && owner->curve.empty();
                last = id;
            }
            if (is_kept && !kept.empty() && kept.back().first + kept.back().count == row) {
                ++kept.back().count;
            } else if (is_kept) {
                kept.push_back({row, 1});
            }
            ++row;
        }
    });
    return kept;
}

/// Writes a table of per-epoch data of the individuals. Rows of individuals without a curve in memory are copied from
/// the earlier archive and come first.
template <class Line>
void write_lines(hid_t file, const std::string& name, const search::Population& population, const Individuals& all,
                 std::vector<Line> Individual::*lines, hid_t earlier) {
    struct Row {
        search::Id id;
        const Line* line;
    };
    std::vector<Row> rows;
    for (const Individual* individual : all) {
        for (const Line& line : individual->*lines) {
            rows.push_back({individual->id, &line});
        }
    }
    hdf5::TableWriter table(rows.size());
    table.column("individual", [&](std::size_t row) { return rows[row].id.value; });
    hdf5::add_columns<Line>(table, [&](std::size_t row) -> const Line& { return *rows[row].line; });
    if (earlier < 0 || !hdf5::has_object(earlier, name)) {
        table.write(file, name);
        return;
    }
    const hdf5::LargeTable before(earlier, name, "individual");
    table.write(file, name, &before, rows_to_keep(before, population));
}

void write_places(hid_t file, const search::Population& population) {
    const std::vector<std::pair<search::Id, std::int32_t>> memberships(population.memberships().begin(),
                                                                       population.memberships().end());
    hdf5::TableWriter members(memberships.size());
    members.column("individual", [&](std::size_t row) { return memberships[row].first.value; });
    members.column("island", [&](std::size_t row) { return memberships[row].second; });
    members.write(file, "memberships");

    const std::vector<std::pair<search::Id, search::Home>> homes(population.homes().begin(), population.homes().end());
    hdf5::TableWriter table(homes.size());
    table.column("individual", [&](std::size_t row) { return homes[row].first.value; });
    hdf5::add_columns<search::Home>(table, [&](std::size_t row) -> const search::Home& { return homes[row].second; });
    table.write(file, "homes");
}

void write_workers(hid_t file, const ArchiveFacts& facts) {
    std::vector<const search::WorkerReport*> all;
    for (const auto& [key, report] : facts.reports) {
        all.push_back(&report);
    }
    hdf5::TableWriter table(all.size());
    hdf5::add_columns<search::WorkerReport>(
        table, [&](std::size_t row) -> const auto& { return *all[row]; });
    table.write(file, "workers");
}

template <class Row>
void write_rows(hid_t file, const char* name, const std::vector<Row>& rows) {
    hdf5::TableWriter table(rows.size());
    hdf5::add_columns<Row>(table, [&](std::size_t row) -> const Row& { return rows[row]; });
    table.write(file, name);
}

/// A gene's bounds as doubles and as whole numbers. Real genes are restored exactly from doubles, int genes from whole
/// numbers.
struct Bounds {
    double low = 0;
    double high = 0;
    std::int64_t low_whole = 0;
    std::int64_t high_whole = 0;
    search::Scale scale = search::Scale::linear;
};
Bounds bounds_of(const search::Gene& gene) {
    if (const auto* real = std::get_if<search::RealGene>(&gene.kind)) {
        return {real->low, real->high, 0, 0, real->scale};
    }
    if (const auto* whole_gene = std::get_if<search::IntGene>(&gene.kind)) {
        return {static_cast<double>(whole_gene->low), static_cast<double>(whole_gene->high), whole_gene->low,
                whole_gene->high, whole_gene->scale};
    }
    const auto words = static_cast<std::int64_t>(std::get<search::ChoiceGene>(gene.kind).options.size());
    return {0, static_cast<double>(words - 1), 0, words - 1, search::Scale::linear};
}

void write_space(hid_t file, const search::Space& space) {
    const auto& genes = space.genes;
    hdf5::TableWriter table(genes.size());
    table.text("gene", [&](std::size_t row) -> const std::string& { return genes[row].name; });
    table.enumeration("kind", gene_kinds,
                      [&](std::size_t row) { return static_cast<std::int32_t>(genes[row].kind.index()); });
    table.enumeration("scale", all_words<search::Scale>(),
                      [&](std::size_t row) { return static_cast<std::int32_t>(bounds_of(genes[row]).scale); });
    table.column("low", [&](std::size_t row) { return bounds_of(genes[row]).low; });
    table.column("high", [&](std::size_t row) { return bounds_of(genes[row]).high; });
    table.column("low_whole", [&](std::size_t row) { return bounds_of(genes[row]).low_whole; });
    table.column("high_whole", [&](std::size_t row) { return bounds_of(genes[row]).high_whole; });
    table.write(file, "space");

    std::vector<std::pair<std::int32_t, const std::string*>> options;
    for (std::size_t i = 0; i < genes.size(); ++i) {
        if (const auto* choice = std::get_if<search::ChoiceGene>(&genes[i].kind)) {
            for (const std::string& option : choice->options) {
                options.emplace_back(static_cast<std::int32_t>(i), &option);
            }
        }
    }
    hdf5::TableWriter choices(options.size());
    choices.column("gene", [&](std::size_t row) { return options[row].first; });
    choices.text("option", [&](std::size_t row) -> const std::string& { return *options[row].second; });
    choices.write(file, "choices");
}

/// Returns about the size of the archive in bytes.
std::size_t bytes_about(const search::Space& space, const Individuals& all, const std::optional<hdf5::Hid>& earlier) {
    std::size_t bytes = all.size() * table_of(space, all).type_bytes();
    for (const Individual* individual : all) {
        constexpr std::size_t metric_bytes =
            Metric::longest_name + sizeof(search::Id) + sizeof(Metric::epoch) + sizeof(double);
        bytes += individual->curve.size() * (sizeof(Epoch) + sizeof(search::Id)) +
                 individual->metrics.size() * metric_bytes + individual->problem.size();
    }
    return bytes + (earlier ? hdf5::file_bytes(earlier->get()) : 0);
}

void write_facts(hid_t file, const search::Population& population, const ArchiveFacts& facts) {
    write_format(file, archive_format);
    hdf5::write_unsigned_attribute(file, "run", facts.run);
    hdf5::write_unsigned_attribute(file, "seed", facts.seed);
    hdf5::write_attribute(file, "restarts", std::int64_t{facts.restarts});
    hdf5::write_attribute(file, "state", std::string(word(facts.state)));
    hdf5::write_attribute(file, "workers", std::int64_t{facts.workers});
    hdf5::write_attribute(file, "islands", std::int64_t{facts.islands});
    hdf5::write_attribute(file, "budget_evaluations", facts.budget_evaluations);
    hdf5::write_attribute(file, "budget_epochs", facts.budget_epochs);
    hdf5::write_attribute(file, "data_fingerprint", facts.data_fingerprint);
    hdf5::write_attribute(file, "written", unix_seconds());
    hdf5::write_attribute(file, "total_individuals", static_cast<std::int64_t>(population.size()));
    hdf5::write_attribute(file, "total_finished", static_cast<std::int64_t>(population.finished()));
    const Individual* best = population.best();
    hdf5::write_attribute(file, "best_individual", best == nullptr ? "" : to_text(best->id));
    hdf5::write_attribute(file, "best_loss", best == nullptr ? Individual::not_measured : best->loss);
    hdf5::write_text(file, "config", facts.config);
}

}  // namespace

void check_archivable(const search::Space& space) {
    static_cast<void>(table_of(space, {}));
}

void write_archive(const std::filesystem::path& path, const search::Space& space, const search::Population& population,
                   const ArchiveFacts& facts, const std::function<void()>& before_replacing) {
    Individuals all;
    all.reserve(population.size());
    for (const auto& [id, individual] : population.individuals()) {
        all.push_back(&individual);
    }
    const std::optional<hdf5::Hid> earlier = open_earlier(path, facts.run, all);
    const auto fill_file = [&](hid_t file) {
        write_facts(file, population, facts);
        write_individuals(file, space, all);
        const hid_t before = earlier ? earlier->get() : -1;
        write_lines(file, "curves", population, all, &Individual::curve, before);
        write_lines(file, "metrics", population, all, &Individual::metrics, before);
        write_problems(file, all);
        write_places(file, population);
        write_workers(file, facts);
        write_rows(file, "starts", facts.starts);
        write_rows(file, "events", facts.events);
        write_rows(file, "reused_runs", facts.reused_runs);
        write_space(file, space);
    };
    const auto fill = [&](hid_t file) {
        try {
            fill_file(file);
        } catch (const FileError& error) {
            throw StorageError(error.what());  // the earlier archive was intact when it was opened
        }
    };
    const bool is_small = bytes_about(space, all, earlier) <= most_bytes_in_memory;
    (is_small ? hdf5::write_file : hdf5::write_large_file)(path, fill, {.before = before_replacing});
}

}  // namespace finch::store
