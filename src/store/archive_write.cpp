#include "finch/hdf5/file.hpp"
#include "finch/hdf5/table.hpp"
#include "finch/search/columns.hpp"
#include "finch/store/archive.hpp"

#include "archive_columns.hpp"
#include "archive_format.hpp"

namespace finch::store {
namespace {

void write_facts(hid_t file, const search::Population& population, const ArchiveFacts& facts) {
    const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
    hdf5::write_attribute(file, "format", std::string(archive_format));
    hdf5::write_attribute(file, "version", archive_version);
    hdf5::write_attribute(file, "run", number(facts.run));
    hdf5::write_attribute(file, "seed", number(facts.seed));
    hdf5::write_attribute(file, "restarts", number(facts.restarts));
    hdf5::write_attribute(file, "data_fingerprint", facts.data_fingerprint);
    hdf5::write_attribute(file, "workers", number(facts.workers));
    hdf5::write_attribute(file, "islands", number(facts.islands));
    hdf5::write_attribute(file, "state", facts.state);
    hdf5::write_attribute(file, "budget_evaluations", facts.budget_evaluations);
    hdf5::write_attribute(file, "individuals", number(population.size()));
    hdf5::write_attribute(file, "settled", number(population.settled()));
    hdf5::write_text(file, "config", facts.config);
}

Columns home_columns(const std::map<search::Id, search::Home>& homes) {
    std::vector<std::uint64_t> ids;
    std::vector<std::int64_t> versions;
    std::vector<std::int32_t> writers;
    std::vector<std::int32_t> islands;
    for (const auto& [id, home] : homes) {
        ids.push_back(id.value);
        versions.push_back(home.version);
        writers.push_back(home.writer);
        islands.push_back(home.island);
    }
    return {{"individual", ids}, {"version", versions}, {"writer", writers}, {"island", islands}};
}

Columns membership_columns(const std::set<std::pair<search::Id, std::int32_t>>& memberships) {
    std::vector<std::uint64_t> ids;
    std::vector<std::int32_t> islands;
    for (const auto& [id, island] : memberships) {
        ids.push_back(id.value);
        islands.push_back(island);
    }
    return {{"individual", ids}, {"island", islands}};
}

}  // namespace

void write_archive(const std::filesystem::path& path, const search::Space& space, const search::Population& population,
                   const ArchiveFacts& facts) {
    std::vector<const search::Individual*> individuals;
    for (const auto& [id, individual] : population.individuals()) {
        individuals.push_back(&individual);
    }
    std::vector<search::WorkerReport> reports;
    for (const auto& [key, report] : facts.reports) {
        reports.push_back(report);
    }
    hdf5::write_file(path, [&](hid_t file) {
        write_facts(file, population, facts);
        hdf5::write_table(file, "individuals", individual_columns(space, individuals));
        hdf5::write_table(file, "curves", curve_columns(individuals));
        hdf5::write_table(file, "memberships", membership_columns(population.memberships()));
        hdf5::write_table(file, "homes", home_columns(population.homes()));
        hdf5::write_table(file, "workers", report_columns(reports));
        hdf5::write_table(file, "events", event_columns(facts.events));
        hdf5::write_table(file, "genes", gene_columns(space));
    });
}

const std::vector<std::string>& reserved_columns() {
    return search::reserved_columns();
}

}  // namespace finch::store
