#include "finch/store/resume.hpp"

#include "finch/base/files.hpp"
#include "finch/base/format.hpp"

#include "read_bytes.hpp"

#include <algorithm>
#include <cmath>
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
        std::erase_if(recovered.facts.events, [](const search::Event& event) { return !std::isfinite(event.time); });
        for (const search::Event& event : recovered.facts.events) {
            known_events_.insert(key(event));
        }
    }

    /// `source` names the file that `record` is from. What cannot be true is named and left out.
    void take(search::Record record, const std::string& source) {
        if (const auto problem = problem_of(record)) {
            recovered_.problems.push_back(fmt::format("{}: {}, skipped", source, *problem));
        } else if (const auto* event = std::get_if<search::Event>(&record)) {
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
    /// What cannot be true of a record; its bytes are as they were written.
    [[nodiscard]] std::optional<std::string> problem_of(const search::Record& record) const {
        if (const auto* event = std::get_if<search::Event>(&record)) {
            return std::isfinite(event->time) ? std::nullopt : std::optional<std::string>("an event without a time");
        }
        if (const auto* report = std::get_if<search::WorkerReport>(&record)) {
            const bool sensible = report->worker >= 0 && report->island >= 0 && report->evaluations >= 0 &&
                                  std::isfinite(report->time) && report->up_seconds >= 0 && report->busy_seconds >= 0;
            return sensible ? std::nullopt : std::optional<std::string>("a worker's report that cannot be true");
        }
        const auto* move = std::get_if<search::Move>(&record);
        const auto* copy = std::get_if<search::Copy>(&record);
        if ((move != nullptr && (move->home.island < 0 || move->home.writer < 0)) ||
            (copy != nullptr && copy->island < 0)) {
            return "an individual that goes to no island";
        }
        return std::visit(
            [&](const auto& kind) -> std::optional<std::string> {
                if constexpr (requires { kind.individual; }) {
                    if (const auto problem = search::problem_of(kind.individual, recovered_.space)) {
                        return fmt::format("the individual {} {}", to_text(kind.individual.id), *problem);
                    }
                }
                return std::nullopt;
            },
            record);
    }

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
        const auto found = without_curve.find(id);
        if (found != without_curve.end() && home.island >= 0 && home.writer >= 0) {
            records.emplace_back(search::Move{found->second, home});
        }
    }
    for (const auto& [id, island] : archive.memberships) {
        if (const auto found = without_curve.find(id); found != without_curve.end() && island >= 0) {
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
    Gathering gathering(recovered);
    for (search::Individual& individual : archive->individuals) {
        gathering.take(record_of(std::move(individual)), directory.archive().string());
    }
    for (const JournalFile& journal : journals) {
        search::RecordReader reader(journal.bytes, recovered.facts.run, journal.name);
        while (auto record = reader.next()) {
            gathering.take(std::move(*record), journal.name);
        }
        recovered.problems.insert(recovered.problems.end(), reader.problems().begin(), reader.problems().end());
    }
    gathering.sort_events();
    add_places(*archive, recovered.records);
    return recovered;
}

}  // namespace finch::store
