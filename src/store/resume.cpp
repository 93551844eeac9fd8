#include "finch/store/resume.hpp"

#include "finch/base/format.hpp"

#include "read_bytes.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace finch::store {
namespace {

namespace fs = std::filesystem;

struct JournalFile {
    std::string name;
    Bytes bytes;
};

/// Every worker's, of this layout and of earlier ones, by name.
std::vector<JournalFile> read_journals(const fs::path& folder, std::vector<std::string>& problems) {
    std::vector<fs::path> paths;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
        if (entry.path().extension() == ".journal") {
            paths.push_back(entry.path());
        }
    }
    std::sort(paths.begin(), paths.end());
    std::vector<JournalFile> journals;
    for (const fs::path& path : paths) {
        journals.push_back({path.string(), read_bytes(path, problems)});
    }
    return journals;
}

/// Sorts what journals say into what a Population merges and what the run's facts take in, each fact once.
class Gathering {
public:
    explicit Gathering(Recovered& recovered) : recovered_(recovered) {
        for (const search::Event& event : recovered.facts.events) {
            known_events_.insert(key(event));
        }
    }

    void take(search::Record record) {
        if (const auto* event = std::get_if<search::Event>(&record)) {
            if (known_events_.insert(key(*event)).second) {
                recovered_.facts.events.push_back(*event);
            }
        } else if (const auto* report = std::get_if<search::WorkerReport>(&record)) {
            search::WorkerReport& known = recovered_.facts.reports[{report->restart, report->worker}];
            if (report->time >= known.time) {
                known = *report;
            }
        } else if (record.index() < 4) {  // Started, Result, Move, Copy
            recovered_.records.push_back(std::move(record));
        }
    }

    void sort_events() {
        std::stable_sort(recovered_.facts.events.begin(), recovered_.facts.events.end(),
                         [](const search::Event& a, const search::Event& b) { return a.time < b.time; });
    }

private:
    using EventKey = std::tuple<double, std::int32_t, std::string, std::string>;
    static EventKey key(const search::Event& event) { return {event.time, event.worker, event.kind, event.text}; }

    Recovered& recovered_;
    std::set<EventKey> known_events_;
};

search::Record record_of(search::Individual individual) {
    if (individual.finished_training()) {
        return search::Result{std::move(individual)};
    }
    return search::Started{std::move(individual)};
}

}  // namespace

void Recovered::merge_into(search::Population& population) const {
    for (const search::Record& record : records) {
        population.merge(record);
    }
    // Where an individual is nowhere its places have nothing to say.
    for (const auto& [id, home] : homes) {
        if (population.find(id) != nullptr) {
            population.merge(id, home);
        }
    }
    for (const auto& [id, island] : memberships) {
        if (population.find(id) != nullptr) {
            population.merge_membership(id, island);
        }
    }
}

std::optional<Recovered> recover(const RunDirectory& directory, Curves curves) {
    // The journals first: a run that goes on empties them only after what they held is in the archive.
    Recovered recovered;
    std::vector<JournalFile> journals;
    for (const fs::path& folder : directory.state_folders()) {
        for (JournalFile& journal : read_journals(folder, recovered.problems)) {
            journals.push_back(std::move(journal));
        }
    }
    auto archive = read_archive(directory.archive(), recovered.problems, curves);
    if (!archive) {
        return std::nullopt;
    }
    recovered.facts = std::move(archive->facts);
    recovered.space = std::move(archive->space);
    recovered.homes = std::move(archive->homes);
    recovered.memberships = std::move(archive->memberships);
    recovered.records.reserve(archive->individuals.size());
    for (search::Individual& individual : archive->individuals) {
        recovered.records.push_back(record_of(std::move(individual)));
    }
    archive.reset();
    Gathering gathering(recovered);
    for (const JournalFile& journal : journals) {
        search::RecordReader reader(journal.bytes, recovered.facts.run, journal.name);
        while (auto record = reader.next()) {
            gathering.take(std::move(*record));
        }
        recovered.problems.insert(recovered.problems.end(), reader.problems().begin(), reader.problems().end());
    }
    gathering.sort_events();
    return recovered;
}

}  // namespace finch::store
