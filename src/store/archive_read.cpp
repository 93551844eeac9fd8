#include "finch/base/enum_words.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/recorded.hpp"
#include "finch/store/archive.hpp"

#include "archive_layout.hpp"
#include "file_format.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>

namespace finch::store {
namespace {

using search::Individual;

// The largest numbers of restarts and workers that an Id can store.
constexpr std::int64_t most_restarts = 1 << 12;
constexpr std::int64_t most_workers = 1 << 20;

search::Space read_space(hid_t file) {
    const hdf5::TableReader table(file, "space");
    const auto names = table.text("gene");
    const auto kinds = table.enumeration("kind", gene_kinds);
    const auto scales = table.enumeration("scale", all_words<search::Scale>());
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
            gene.kind = search::IntGene{low_whole[i], high_whole[i], static_cast<search::Scale>(scales[i])};
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

/// Reads the genes of a block of rows into `individuals`.
void read_genes(const hdf5::TableReader& block, const search::Space& space, std::span<Individual> individuals) {
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
            take(block.enumeration(name, choice->options));
        } else if (std::holds_alternative<search::IntGene>(space.genes[gene].kind)) {
            take(block.column<std::int64_t>(name));
        } else {
            take(block.column<double>(name));
        }
    }
}

std::vector<Individual> read_individuals(hid_t file, std::int64_t version, const search::Space& space) {
    std::vector<Individual> all;
    hdf5::TableReader::read_in_blocks(file, "individuals", [&](const hdf5::TableReader& block, std::size_t first) {
        all.resize(first + block.rows());
        const std::span<Individual> some = std::span(all).subspan(first);
        hdf5::read_columns<Individual>(
            block, [&](std::size_t row) -> Individual& { return some[row]; }, version);
        read_genes(block, space, some);
        all.reserve(block.all_rows());  // once the first block has shown that the rows exist
    });
    return all;
}

/// Adds data from other tables: problems and, if wanted, learning curves and metrics.
void read_details(hid_t file, std::int64_t version, std::vector<Individual>& individuals, Curves wanted) {
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
    const auto read_lines = [&]<class Line>(const char* name, std::vector<Line> Individual::*lines) {
        if (wanted == Curves::leave) {
            static_cast<void>(hdf5::LargeTable(file, name, "individual"));  // the next archive copies this table
            return;
        }
        const hdf5::TableReader table(file, name);
        const auto ids = table.column<std::uint64_t>("individual");
        auto rows = hdf5::read_rows<Line>(table, version);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            (owner(ids[i], name).*lines).push_back(std::move(rows[i]));
        }
    };
    read_lines("curves", &Individual::curve);
    read_lines("metrics", &Individual::metrics);
}

void read_places(hid_t file, std::int64_t version, Archive& archive) {
    const hdf5::TableReader members(file, "memberships");
    const auto member = members.column<std::uint64_t>("individual");
    const auto island = members.column<std::int32_t>("island");
    for (std::size_t i = 0; i < members.rows(); ++i) {
        archive.memberships.emplace_back(search::Id{member[i]}, island[i]);
    }
    const hdf5::TableReader homes(file, "homes");
    const auto owner = homes.column<std::uint64_t>("individual");
    const auto places = hdf5::read_rows<search::Home>(homes, version);
    for (std::size_t i = 0; i < homes.rows(); ++i) {
        archive.homes.emplace_back(search::Id{owner[i]}, places[i]);
    }
}

void read_workers(hid_t file, std::int64_t version, ArchiveFacts& facts) {
    for (auto& report : hdf5::read_rows<search::WorkerReport>(hdf5::TableReader(file, "workers"), version)) {
        facts.reports[{report.restart, report.worker}] = std::move(report);
    }
}

/// Reads an integer attribute. Throws FileError unless the attribute's value is in [low, high].
std::int64_t read_count(hid_t file, const char* name, std::int64_t low, std::int64_t high) {
    const std::int64_t value = hdf5::read_int_attribute(file, name);
    if (value < low || value > high) {
        throw FileError(fmt::format("attribute {} is {}, which cannot be", name, value));
    }
    return value;
}

ArchiveFacts read_facts(hid_t file) {
    const std::int64_t version = read_version(file, archive_format);
    ArchiveFacts facts;
    facts.run = hdf5::read_unsigned_attribute(file, "run");
    facts.seed = hdf5::read_unsigned_attribute(file, "seed");
    facts.restarts = static_cast<std::uint32_t>(read_count(file, "restarts", 0, most_restarts));
    facts.config = hdf5::read_text(file, "config");
    facts.data_fingerprint = hdf5::read_text_attribute(file, "data_fingerprint");
    facts.program_version = hdf5::read_text_attribute(file, "program_version");
    facts.workers = static_cast<int>(read_count(file, "workers", 1, most_workers));
    facts.islands = static_cast<int>(read_count(file, "islands", 1, most_workers));
    facts.state = enumerator<RunState>(hdf5::read_text_attribute(file, "state")).value_or(RunState::interrupted);
    facts.budget_evaluations = hdf5::read_int_attribute(file, "budget_evaluations");
    facts.budget_epochs = hdf5::read_int_attribute(file, "budget_epochs");
    read_workers(file, version, facts);
    facts.starts = hdf5::read_rows<Start>(hdf5::TableReader(file, "starts"), version);
    facts.events = hdf5::read_rows<search::Event>(hdf5::TableReader(file, "events"), version);
    facts.reused_runs = hdf5::read_rows<ReusedRun>(hdf5::TableReader(file, "reused_runs"), version);
    return facts;
}

}  // namespace

std::optional<Archive> read_archive(const std::filesystem::path& path, std::vector<std::string>& problems,
                                    OnDamage on_damage, Curves curves) {
    std::vector<std::string> found;
    const auto file = hdf5::open_file_or_previous(path, found, on_damage);
    problems.insert(problems.end(), found.begin(), found.end());
    if (!file) {
        const std::filesystem::path aside = path.string() + damaged_suffix;
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
        const std::int64_t version = hdf5::read_int_attribute(file->get(), "version");
        archive.individuals = read_individuals(file->get(), version, archive.space);
        read_details(file->get(), version, archive.individuals, curves);
        read_places(file->get(), version, archive);
        return archive;
    } catch (const FileError& error) {
        throw FileError(path.string() + ": " + error.what());
    }
}

}  // namespace finch::store
