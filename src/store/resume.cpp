#include "finch/store/resume.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <tuple>

namespace finch::store {
namespace {

Bytes read_bytes(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto raw = std::as_bytes(std::span(text));
    return {raw.begin(), raw.end()};
}

std::vector<std::filesystem::path> journals_in(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> found;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        if (entry.path().extension() == ".journal") {
            found.push_back(entry.path());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

void add(search::Record&& record, Recovered& recovered) {
    if (const auto* event = std::get_if<search::Event>(&record)) {
        recovered.facts.events.push_back(*event);
    } else if (const auto* report = std::get_if<search::WorkerReport>(&record)) {
        search::WorkerReport& known = recovered.facts.reports[{report->restart, report->worker}];
        if (report->time >= known.time) {
            known = *report;
        }
    } else {
        recovered.records.push_back(std::move(record));
    }
}

/// An event stands in the archive and in the journal where the journal was not emptied in time.
void sort_and_unite(std::vector<search::Event>& events) {
    const auto key = [](const search::Event& event) {
        return std::tie(event.time, event.worker, event.kind, event.text);
    };
    std::sort(events.begin(), events.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    events.erase(
        std::unique(events.begin(), events.end(), [&](const auto& a, const auto& b) { return key(a) == key(b); }),
        events.end());
}

}  // namespace

std::optional<Recovered> recover(const RunDirectory& directory) {
    Recovered recovered;
    if (!directory.holds_a_run()) {
        return std::nullopt;
    }
    auto archive = read_archive(directory.archive(), recovered.problems);
    if (!archive) {
        throw FileError(fmt::format("{}: neither the archive nor its predecessor can be read: {}",
                                    directory.archive().string(), fmt::join(recovered.problems, "; ")));
    }
    recovered.facts = std::move(archive->facts);
    recovered.space = std::move(archive->space);
    std::map<search::Id, search::Individual> known;
    for (search::Individual& individual : archive->individuals) {
        known[individual.id] = individual;
        const bool ended = individual.finished_training();
        recovered.records.push_back(ended ? search::Record(search::Result{std::move(individual)})
                                          : search::Record(search::Started{std::move(individual)}));
    }
    for (const auto& [id, home] : archive->homes) {
        recovered.records.emplace_back(search::Move{known[id], home});
    }
    for (const auto& [id, island] : archive->memberships) {
        recovered.records.emplace_back(search::Copy{known[id], island});
    }
    for (const std::filesystem::path& path : journals_in(directory.state())) {
        const Bytes bytes = read_bytes(path);
        search::RecordReader reader(bytes, recovered.facts.run, path.string());
        while (auto record = reader.next()) {
            add(std::move(*record), recovered);
        }
        recovered.problems.insert(recovered.problems.end(), reader.problems().begin(), reader.problems().end());
    }
    sort_and_unite(recovered.facts.events);
    return recovered;
}

}  // namespace finch::store
