#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/table.hpp"
#include "finch/store/archive.hpp"

#include "archive_layout.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace finch::store {
namespace {

using search::Individual;

// What an Id has room for.
constexpr std::int64_t most_restarts = 1 << 12;
constexpr std::int64_t most_workers = 1 << 20;

search::Space read_space(hid_t file) {
    const hdf5::TableReader table(file, "space");
    const auto names = table.text("gene");
    const auto kinds = table.enumeration("kind", gene_kinds);
    const auto scales = table.enumeration("scale", gene_scales);
    const auto low = table.column<double>("low");
    const auto high = table.column<double>("high");
    const auto low_whole = table.column<std::int64_t>("low_whole");
    const auto high_whole = table.column<std::int64_t>("high_whole");
    search::Space space;
    for (std::size_t i = 0; i < table.rows(); ++i) {
        search::Gene gene{names[i], search::ChoiceGene{}};
        if (kinds[i] == 0) {
            gene.kind = search::RealGene{low[i], high[i], static_cast<search::Scale>(scales[i])};
        } else if (kinds[i] == 1) {
            gene.kind = search::IntGene{low_whole[i], high_whole[i]};
        }
        space.genes.push_back(std::move(gene));
    }
    const hdf5::TableReader choices(file, "choices");
    const auto genes = choices.column<std::int32_t>("gene");
    const auto options = choices.text("option");
    for (std::size_t i = 0; i < choices.rows(); ++i) {
        const auto gene = static_cast<std::size_t>(genes[i]);
        auto* choice = gene < space.size() ? std::get_if<search::ChoiceGene>(&space.genes[gene].kind) : nullptr;
        if (choice == nullptr) {
            throw FileError(fmt::format("choices: row {} belongs to no gene of choices", i));
        }
        choice->options.push_back(options[i]);
    }
    return space;
}

/// Puts the values of one column into a field of each individual.
template <class T, class Field>
void fill(const hdf5::TableReader& table, const char* column, std::vector<Individual>& individuals, Field field) {
    const auto values = table.column<T>(column);
    for (std::size_t i = 0; i < values.size(); ++i) {
        field(individuals[i]) = values[i];
    }
}

void read_genes(const hdf5::TableReader& table, const search::Space& space, std::vector<Individual>& individuals) {
    for (Individual& individual : individuals) {
        individual.genome.resize(space.size());
    }
    for (std::size_t gene = 0; gene < space.size(); ++gene) {
        const auto take = [&](const auto& values) {
            for (std::size_t i = 0; i < values.size(); ++i) {
                individuals[i].genome[gene] = static_cast<double>(values[i]);
            }
        };
        const std::string& name = space.genes[gene].name;
        if (const auto* choice = std::get_if<search::ChoiceGene>(&space.genes[gene].kind)) {
            take(table.enumeration(name, choice->options));
        } else if (std::holds_alternative<search::IntGene>(space.genes[gene].kind)) {
            take(table.column<std::int64_t>(name));
        } else {
            take(table.column<double>(name));
        }
    }
}

void read_words(const hdf5::TableReader& table, std::vector<Individual>& individuals) {
    const auto outcomes = table.enumeration("outcome", words_of(search::outcome_names));
    const auto operators = table.enumeration("operator", words_of(search::operator_names));
    auto nodes = table.text("node");
    auto devices = table.text("device");
    for (std::size_t i = 0; i < individuals.size(); ++i) {
        individuals[i].outcome = static_cast<search::Outcome>(outcomes[i]);
        individuals[i].bred_by = static_cast<search::Operator>(operators[i]);
        individuals[i].node = std::move(nodes[i]);
        individuals[i].device = std::move(devices[i]);
    }
}

struct Parents {
    std::vector<std::uint64_t> first;
    std::vector<std::uint64_t> second;
};

/// Version 1 had both in one column.
Parents read_parents(const hdf5::TableReader& table) {
    if (table.has("parent_1")) {
        return {table.column<std::uint64_t>("parent_1"), table.column<std::uint64_t>("parent_2")};
    }
    Parents parents;
    for (const hdf5::Pair& pair : table.column<hdf5::Pair>("parents")) {
        parents.first.push_back(pair[0]);
        parents.second.push_back(pair[1]);
    }
    return parents;
}

/// Columns that version 1 has not.
void read_attempts(const hdf5::TableReader& table, std::vector<Individual>& all) {
    if (!table.has("last_restart")) {
        return;
    }
    fill<double>(table, "training_seconds", all, [](Individual& one) -> double& { return one.training_seconds; });
    fill<double>(table, "progress", all, [](Individual& one) -> double& { return one.progress; });
    fill<std::uint32_t>(table, "last_restart", all,
                        [](Individual& one) -> std::uint32_t& { return one.attempt.restart; });
    fill<std::int32_t>(table, "last_worker", all, [](Individual& one) -> std::int32_t& { return one.attempt.worker; });
    fill<std::int32_t>(table, "deaths", all, [](Individual& one) -> std::int32_t& { return one.attempt.deaths; });
    fill<double>(table, "progress_at_death", all,
                 [](Individual& one) -> double& { return one.attempt.progress_at_death; });
}

std::vector<Individual> read_individuals(hid_t file, const search::Space& space) {
    const hdf5::TableReader table(file, "individuals");
    std::vector<Individual> all(table.rows());
    const auto ids = table.column<std::uint64_t>("id");
    const Parents parents = read_parents(table);
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].id = {ids[i]};
        all[i].parents = {search::Id{parents.first[i]}, search::Id{parents.second[i]}};
    }
    read_genes(table, space, all);
    read_words(table, all);
    fill<double>(table, "loss", all, [](Individual& one) -> double& { return one.loss; });
    fill<double>(table, "accuracy", all, [](Individual& one) -> double& { return one.accuracy; });
    fill<std::int32_t>(table, "epochs", all, [](Individual& one) -> std::int32_t& { return one.epochs; });
    fill<std::int32_t>(table, "best_epoch", all, [](Individual& one) -> std::int32_t& { return one.best_epoch; });
    fill<std::int32_t>(table, "island", all, [](Individual& one) -> std::int32_t& { return one.island; });
    fill<std::int32_t>(table, "generation", all, [](Individual& one) -> std::int32_t& { return one.generation; });
    fill<double>(table, "born", all, [](Individual& one) -> double& { return one.born; });
    fill<double>(table, "started", all, [](Individual& one) -> double& { return one.started; });
    fill<double>(table, "finished", all, [](Individual& one) -> double& { return one.finished; });
    fill<double>(table, "samples_per_second", all, [](Individual& one) -> double& { return one.samples_per_second; });
    fill<std::int32_t>(table, "ranks", all, [](Individual& one) -> std::int32_t& { return one.ranks; });
    fill<std::int32_t>(table, "threads", all, [](Individual& one) -> std::int32_t& { return one.threads; });
    fill<std::int64_t>(table, "batch_size", all, [](Individual& one) -> std::int64_t& { return one.batch_size; });
    read_attempts(table, all);
    return all;
}

/// Adds what stands in other tables: problems and, where they are wanted, learning curves.
void read_details(hid_t file, std::vector<Individual>& individuals, Curves wanted) {
    std::unordered_map<std::uint64_t, Individual*> by_id;
    for (Individual& individual : individuals) {
        by_id.emplace(individual.id.value, &individual);
    }
    const auto owner = [&](std::uint64_t id, const char* table) -> Individual& {
        const auto found = by_id.find(id);
        if (found == by_id.end()) {
            throw FileError(fmt::format("{}: there is no individual {}", table, to_text(search::Id{id})));
        }
        return *found->second;
    };
    const hdf5::TableReader problems(file, "problems");
    const auto troubled = problems.column<std::uint64_t>("individual");
    const auto texts = problems.text("text");
    for (std::size_t i = 0; i < problems.rows(); ++i) {
        owner(troubled[i], "problems").problem = texts[i];
    }
    if (wanted == Curves::leave) {
        return;
    }
    const hdf5::TableReader curves(file, "curves");
    const auto ids = curves.column<std::uint64_t>("individual");
    const auto epoch = curves.column<std::int32_t>("epoch");
    const auto training_loss = curves.column<double>("training_loss");
    const auto training_accuracy = curves.column<double>("training_accuracy");
    const auto validation_loss = curves.column<double>("validation_loss");
    const auto validation_accuracy = curves.column<double>("validation_accuracy");
    const auto learning_rate = curves.column<double>("learning_rate");
    const auto seconds = curves.column<double>("seconds");
    const auto ranks = curves.has("ranks") ? curves.column<std::int32_t>("ranks")
                                           : std::vector<std::int32_t>(curves.rows());  // version 1
    for (std::size_t i = 0; i < curves.rows(); ++i) {
        owner(ids[i], "curves")
            .curve.push_back({epoch[i], ranks[i], training_loss[i], training_accuracy[i], validation_loss[i],
                              validation_accuracy[i], learning_rate[i], seconds[i]});
    }
}

void read_places(hid_t file, Archive& archive) {
    const hdf5::TableReader members(file, "memberships");
    const auto member = members.column<std::uint64_t>("individual");
    const auto island = members.column<std::int32_t>("island");
    for (std::size_t i = 0; i < members.rows(); ++i) {
        archive.memberships.emplace_back(search::Id{member[i]}, island[i]);
    }
    const hdf5::TableReader homes(file, "homes");
    const auto owner = homes.column<std::uint64_t>("individual");
    const auto version = homes.column<std::uint32_t>("version");
    const auto writer = homes.column<std::int32_t>("writer");
    const auto where = homes.column<std::int32_t>("island");
    for (std::size_t i = 0; i < homes.rows(); ++i) {
        archive.homes.emplace_back(search::Id{owner[i]}, search::Home{version[i], writer[i], where[i]});
    }
}

void read_workers(hid_t file, ArchiveFacts& facts) {
    const hdf5::TableReader table(file, "workers");
    const auto restart = table.column<std::uint32_t>("restart");
    const auto worker = table.column<std::int32_t>("worker");
    const auto island = table.column<std::int32_t>("island");
    const auto ranks = table.column<std::int32_t>("ranks");
    const auto threads = table.column<std::int32_t>("threads");
    const auto node = table.text("node");
    const auto device = table.text("device");
    const auto time = table.column<double>("time");
    const auto up = table.column<double>("up_seconds");
    const auto busy = table.column<double>("busy_seconds");
    const auto evaluations = table.column<std::int64_t>("evaluations");
    for (std::size_t i = 0; i < table.rows(); ++i) {
        facts.reports[{restart[i], worker[i]}] = {restart[i], worker[i], island[i], ranks[i], threads[i],    node[i],
                                                  device[i],  time[i],   up[i],     busy[i],  evaluations[i]};
    }
}

/// Version 1 has none: what the workers reported then says it.
std::vector<Start> starts_of(const ArchiveFacts& facts) {
    std::map<std::uint32_t, Start> starts;
    std::map<std::uint32_t, std::set<std::string>> nodes;
    for (const auto& [key, report] : facts.reports) {
        Start& start = starts[key.first];
        start.restart = key.first;
        ++start.workers;
        start.began = start.began == 0 ? report.time - report.up_seconds : start.began;
        start.seconds = std::max(start.seconds, report.up_seconds);
        nodes[key.first].insert(report.node);
    }
    std::vector<Start> all;
    for (auto& [restart, start] : starts) {
        start.nodes = static_cast<std::int32_t>(nodes[restart].size());
        all.push_back(start);
    }
    return all;
}

std::vector<Start> read_starts(hid_t file) {
    const hdf5::TableReader table(file, "starts");
    const auto restart = table.column<std::uint32_t>("restart");
    const auto workers = table.column<std::int32_t>("workers");
    const auto nodes = table.column<std::int32_t>("nodes");
    const auto began = table.column<double>("began");
    const auto seconds = table.column<double>("seconds");
    const auto progress = table.column<double>("progress");
    const auto silent_ends = table.column<std::int32_t>("silent_ends");
    std::vector<Start> starts;
    for (std::size_t i = 0; i < table.rows(); ++i) {
        starts.push_back({restart[i], workers[i], nodes[i], began[i], seconds[i], progress[i], silent_ends[i]});
    }
    return starts;
}

void read_events(hid_t file, ArchiveFacts& facts) {
    const hdf5::TableReader table(file, "events");
    const auto time = table.column<double>("time");
    const auto worker = table.column<std::int32_t>("worker");
    const auto kind = table.text("kind");
    const auto text = table.text("text");
    for (std::size_t i = 0; i < table.rows(); ++i) {
        facts.events.push_back({time[i], worker[i], kind[i], text[i]});
    }
}

/// An attribute whose value must be in [low, high].
std::int64_t read_count(hid_t file, const char* name, std::int64_t low, std::int64_t high) {
    const std::int64_t value = hdf5::read_int_attribute(file, name);
    if (value < low || value > high) {
        throw FileError(fmt::format("attribute {} is {}, which cannot be", name, value));
    }
    return value;
}

ArchiveFacts read_facts(hid_t file) {
    const std::string format = hdf5::read_text_attribute(file, "format");
    const std::int64_t version = hdf5::read_int_attribute(file, "version");
    if (format != archive_format || version < oldest_archive_version || version > archive_version) {
        throw FileError(fmt::format("is \"{}\" version {}; this program reads \"{}\" versions {} to {}", format,
                                    version, archive_format, oldest_archive_version, archive_version));
    }
    ArchiveFacts facts;
    facts.run = hdf5::read_unsigned_attribute(file, "run");
    facts.seed = hdf5::read_unsigned_attribute(file, "seed");
    facts.restarts = static_cast<std::uint32_t>(read_count(file, "restarts", 0, most_restarts));
    facts.config = hdf5::read_text(file, "config");
    facts.data_fingerprint = hdf5::read_text_attribute(file, "data_fingerprint");
    facts.workers = static_cast<int>(read_count(file, "workers", 1, most_workers));
    facts.islands = static_cast<int>(read_count(file, "islands", 1, most_workers));
    facts.state = hdf5::read_text_attribute(file, "state");
    facts.budget_evaluations = hdf5::read_int_attribute(file, "budget_evaluations");
    read_workers(file, facts);
    facts.starts = version >= 2 ? read_starts(file) : starts_of(facts);
    read_events(file, facts);
    return facts;
}

}  // namespace

std::optional<Archive> read_archive(const std::filesystem::path& path, std::vector<std::string>& problems,
                                    hdf5::OnDamage on_damage, Curves curves) {
    std::vector<std::string> found;
    const auto file = hdf5::open_file_or_previous(path, found, on_damage);
    problems.insert(problems.end(), found.begin(), found.end());
    if (!file) {
        const std::filesystem::path aside = path.string() + hdf5::damaged_suffix;
        if (found.empty() && !is_there(aside)) {
            return std::nullopt;
        }
        throw FileError(
            fmt::format("{}: neither the archive nor its predecessor can be read{}{}; put a good copy "
                        "there, or begin anew with --fresh, which keeps what is there",
                        path.string(), found.empty() ? ", see " + aside.string() : ": ", fmt::join(found, "; ")));
    }
    try {
        Archive archive;
        archive.facts = read_facts(file->get());
        archive.space = read_space(file->get());
        archive.individuals = read_individuals(file->get(), archive.space);
        read_details(file->get(), archive.individuals, curves);
        read_places(file->get(), archive);
        return archive;
    } catch (const FileError& error) {
        throw FileError(path.string() + ": " + error.what());
    }
}

}  // namespace finch::store
