#include "finch/store/resume.hpp"

#include "finch/base/files.hpp"
#include "finch/base/format.hpp"

#include "read_bytes.hpp"

#include <set>
#include <tuple>

namespace finch::store {
namespace {

namespace fs = std::filesystem;

struct JournalFile {
    std::string name;
    Bytes bytes;
};

/// Every worker's, of this layout and of earlier ones, by name. One that cannot be read stops whoever would empty it.
std::vector<JournalFile> read_journals(const fs::path& folder, hdf5::OnDamage on_damage,
                                       std::vector<std::string>& problems) {
    std::vector<JournalFile> journals;
    for (const fs::path& path : list_folder(folder)) {
        if (path.extension() != ".journal") {
            continue;
        }
        try {
            journals.push_back({path.string(), read_bytes(path, problems)});
        } catch (const StorageError& error) {
            if (on_damage == hdf5::OnDamage::set_aside) {
                throw;
            }
            problems.emplace_back(error.what());
        }
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

/// The archive's registers and memberships, as records that carry their individual. One whose individual is nowhere has
/// nothing to say.
void add_places(const Archive& archive, std::vector<search::Record>& records) {
    std::map<search::Id, search::Individual> without_curve;
    const auto note = [&](const search::Individual& individual) {
        const auto [entry, is_new] = without_curve.try_emplace(individual.id, individual);
        if (is_new) {
            entry->second.curve.clear();
        }
    };
    std::set<search::Id> wanted;
    for (const auto& [id, home] : archive.homes) {
        wanted.insert(id);
    }
    for (const auto& [id, island] : archive.memberships) {
        wanted.insert(id);
    }
    for (const search::Record& record : records) {
        std::visit(
            [&](const auto& kind) {
                if constexpr (requires { kind.individual; }) {
                    if (wanted.contains(kind.individual.id)) {
                        note(kind.individual);
                    }
                }
            },
            record);
    }
    for (const auto& [id, home] : archive.homes) {
        if (const auto found = without_curve.find(id); found != without_curve.end()) {
            records.emplace_back(search::Move{found->second, home});
        }
    }
    for (const auto& [id, island] : archive.memberships) {
        if (const auto found = without_curve.find(id); found != without_curve.end()) {
            records.emplace_back(search::Copy{found->second, island});
        }
    }
}

search::Record record_of(search::Individual individual) {
    if (individual.finished_training()) {
        return search::Result{std::move(individual)};
    }
    return search::Started{std::move(individual)};
}

}  // namespace

std::optional<Recovered> recover(const RunDirectory& directory, hdf5::OnDamage on_damage) {
    // The journals first: a run that goes on empties them only after what they held is in the archive.
    Recovered recovered;
    const std::vector<JournalFile> journals = read_journals(directory.state(), on_damage, recovered.problems);
    auto archive = read_archive(directory.archive(), recovered.problems, on_damage);
    if (!archive) {
        return std::nullopt;
    }
    recovered.facts = std::move(archive->facts);
    recovered.space = std::move(archive->space);
    for (search::Individual& individual : archive->individuals) {
        recovered.records.push_back(record_of(std::move(individual)));
    }
    Gathering gathering(recovered);
    for (const JournalFile& journal : journals) {
        search::RecordReader reader(journal.bytes, recovered.facts.run, journal.name);
        while (auto record = reader.next()) {
            gathering.take(std::move(*record));
        }
        recovered.problems.insert(recovered.problems.end(), reader.problems().begin(), reader.problems().end());
    }
    gathering.sort_events();
    add_places(*archive, recovered.records);
    return recovered;
}

}  // namespace finch::store
