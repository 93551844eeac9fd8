#include "finch/store/resume.hpp"

#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/base/words.hpp"

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

/// Reads all journals of a run, including journals of earlier directory layouts. If a journal cannot be read, a
/// resuming start fails, since it would otherwise empty that journal.
std::vector<JournalFile> read_journals(const RunDirectory& directory, OnDamage on_damage,
                                       std::vector<std::string>& problems) {
    std::vector<JournalFile> journals;
    for (const fs::path& path : directory.state_files()) {
        if (path.extension() != ".journal") {
            continue;
        }
        try {
            journals.push_back({path.string(), read_bytes(path, problems)});
        } catch (const StorageError& error) {
            if (on_damage == OnDamage::set_aside) {
                throw;
            }
            problems.emplace_back(error.what());
        }
    }
    return journals;
}

template <class... Kinds>
bool is_one_of(const search::Record& record) {
    return (std::holds_alternative<Kinds>(record) || ...);
}

bool concerns_population(const search::Record& record) {
    return is_one_of<search::Started, search::Result, search::Move, search::Copy>(record);
}

/// Distributes the records of journals: some go to a Population, others to the run's facts. An event that is recorded
/// several times is added only once.
class JournalMerge {
public:
    explicit JournalMerge(Recovered& recovered) : recovered_(recovered) {
        std::erase_if(recovered.facts.events, [](const search::Event& event) { return !std::isfinite(event.time); });
        for (const search::Event& event : recovered.facts.events) {
            known_events_.insert(key(event));
        }
    }

    /// Removes individuals with impossible values, and reports them in `problems`.
    void check_individuals(const std::string& source) {
        std::erase_if(recovered_.individuals, [&](search::Individual& individual) {
            search::mark_bad_loss(individual);
            const auto problem = problem_of(individual);
            if (problem) {
                recovered_.problems.push_back(fmt::format("{}: {}, skipped", source, *problem));
            }
            return problem.has_value();
        });
    }

    /// Takes one record from the file `source`. If the record has impossible values, reports it and leaves it out.
    void take(search::Record&& record, const std::string& source) {
        if (search::Individual* const individual = search::individual_of(record)) {
            search::mark_bad_loss(*individual);
        }
        if (const auto problem = problem_of(record)) {
            recovered_.problems.push_back(fmt::format("{}: {}, skipped", source, *problem));
        } else if (const auto* event = std::get_if<search::Event>(&record)) {
            if (known_events_.insert(key(*event)).second) {
                recovered_.facts.events.push_back(*event);
            }
        } else if (const auto* report = std::get_if<search::WorkerReport>(&record)) {
            recovered_.facts.merge(*report);
        } else if (concerns_population(record)) {
            recovered_.records.push_back(std::move(record));
        }
    }

    void sort_events() {
        std::stable_sort(recovered_.facts.events.begin(), recovered_.facts.events.end(),
                         [](const search::Event& a, const search::Event& b) { return a.time < b.time; });
    }

private:
    /// Returns the reason why a record is impossible although its bytes are intact.
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
        const search::Individual* const individual = search::individual_of(record);
        return individual != nullptr ? problem_of(*individual) : std::nullopt;
    }
    [[nodiscard]] std::optional<std::string> problem_of(const search::Individual& individual) const {
        const auto problem = search::problem_of(individual, recovered_.space);
        return problem ? std::optional(fmt::format("the individual {} {}", to_text(individual.id), *problem))
                       : std::nullopt;
    }

    using EventKey = std::tuple<double, std::int32_t, std::string, std::string>;
    static EventKey key(const search::Event& event) { return {event.time, event.worker, event.kind, event.text}; }

    Recovered& recovered_;
    std::set<EventKey> known_events_;
};

/// Merges homes and memberships into the population. Ignores entries of individuals that the population does not
/// contain.
void merge_places(const Recovered& recovered, search::Population& population) {
    for (const auto& [id, home] : recovered.homes) {
        if (population.find(id) != nullptr && home.island >= 0 && home.writer >= 0) {
            population.merge(id, home);
        }
    }
    for (const auto& [id, island] : recovered.memberships) {
        if (population.find(id) != nullptr && island >= 0) {
            population.merge_membership(id, island);
        }
    }
}

/// Throws ConfigError if the archive is missing but other files of the run exist: a new run would overwrite results.
void refuse_without_archive(const RunDirectory& directory) {
    const std::string archive = directory.archive().string();
    std::error_code none;
    const std::string link = fs::is_symlink(directory.archive(), none) ? dangling_link(directory.archive()) : "";
    const std::vector<fs::path> remains = directory.remains();
    if (is_there(directory.archive()) || (link.empty() && remains.empty())) {
        return;
    }
    throw ConfigError(fmt::format(
        "{}; put a copy of it back, or begin anew with --fresh, which renames the folder and removes nothing",
        link.empty() ? fmt::format("{} is missing, but an earlier run has left {} in {} (such as {})", archive,
                                   counted(std::ssize(remains), "file"), directory.state().string(),
                                   remains.front().filename().string())
                     : link));
}

bool is_run(const fs::path& path) {
    std::error_code none;
    return fs::exists(RunDirectory(path).archive(), none);
}

/// Returns the run directories that were probably meant by `path`, which is no run directory: runs/NAME, the folder of
/// a file, the runs in a folder, or one with a similar name.
std::vector<std::string> runs_meant_by(const fs::path& path) {
    constexpr std::size_t most = 5;
    const fs::path runs = "runs";
    std::vector<std::string> found;
    std::error_code none;
    if (fs::is_directory(path, none)) {
        for (const fs::path& entry : list_folder(path)) {
            if (found.size() < most && is_run(entry)) {
                found.push_back(entry.string());
            }
        }
    }
    for (const fs::path& one : {runs / path, path.parent_path(), similar_beside(path), similar_beside(runs / path),
                                fs::path(path).replace_extension(), runs / path.stem()}) {
        if (found.empty() && !one.empty() && is_run(one)) {
            found.push_back(one.string());
        }
    }
    return found;
}

}  // namespace

void Recovered::adopt(const search::Space& now) {
    const auto adopt_values = [&](search::Individual& individual) {
        for (std::size_t i = 0; i < now.size() && individual.genome.size() == now.size(); ++i) {
            double& value = individual.genome[i];
            if (search::is_fixed(now.genes[i])) {
                value = search::first_value(now.genes[i]);
            } else if (std::holds_alternative<search::RealGene>(now.genes[i].kind)) {
                value = search::value_in(now.genes[i], number_text(value)).value_or(value);
            }
        }
    };
    std::for_each(individuals.begin(), individuals.end(), adopt_values);
    for (search::Record& record : records) {
        if (search::Individual* const individual = search::individual_of(record)) {
            adopt_values(*individual);
        }
    }
    space = now;
}

std::string no_run_text(const RunDirectory& directory) {
    const std::string link = dangling_link(directory.archive());
    const std::vector<std::string> similar =
        link.empty() ? runs_meant_by(directory.root()) : std::vector<std::string>();
    return fmt::format("there is no run here ({}){}", link.empty() ? "no population.h5" : link,
                       similar.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(similar, " or ")));
}

void throw_no_run(const RunDirectory& directory) {
    throw ConfigError(fmt::format("{}: {}", directory.root().string(), no_run_text(directory)));
}

void Recovered::merge_into(search::Population& population) const {
    for (const search::Individual& individual : individuals) {
        population.merge(individual);
    }
    for (const search::Record& record : records) {
        population.merge(record);
    }
    merge_places(*this, population);
}

void Recovered::move_into(search::Population& population) {
    for (search::Individual& individual : individuals) {
        population.merge(std::move(individual));
    }
    std::vector<search::Individual>().swap(individuals);
    for (search::Record& record : records) {
        population.merge(std::move(record));
    }
    std::vector<search::Record>().swap(records);
    merge_places(*this, population);
}

std::optional<Recovered> recover(const RunDirectory& directory, OnDamage on_damage, Curves curves) {
    // The journals are read before the archive: a running process empties them only after it has archived their
    // records.
    Recovered recovered;
    const std::vector<JournalFile> journals = read_journals(directory, on_damage, recovered.problems);
    auto archive = read_archive(directory.archive(), recovered.problems, on_damage, curves);
    if (!archive) {
        refuse_without_archive(directory);
        return std::nullopt;
    }
    recovered.facts = std::move(archive->facts);
    recovered.space = std::move(archive->space);
    recovered.homes = std::move(archive->homes);
    recovered.memberships = std::move(archive->memberships);
    recovered.individuals = std::move(archive->individuals);
    JournalMerge gathering(recovered);
    gathering.check_individuals(directory.archive().string());
    for (const JournalFile& journal : journals) {
        search::RecordReader reader(journal.bytes, recovered.facts.run, journal.name);
        while (auto record = reader.next()) {
            gathering.take(std::move(*record), journal.name);
        }
        recovered.problems.insert(recovered.problems.end(), reader.problems().begin(), reader.problems().end());
    }
    gathering.sort_events();
    return recovered;
}

Recovered recover_run(const RunDirectory& directory, Curves curves) {
    auto recovered = recover(directory, OnDamage::leave, curves);
    if (!recovered) {
        throw_no_run(directory);
    }
    return *std::move(recovered);
}

std::map<std::uint32_t, double> seconds_of_starts(const ArchiveFacts& facts) {
    std::map<std::uint32_t, double> longest;
    for (const Start& start : facts.starts) {
        longest[start.restart] = start.seconds;
    }
    for (const auto& [key, report] : facts.reports) {
        longest[key.first] = std::max(longest[key.first], report.up_seconds);
    }
    return longest;
}

}  // namespace finch::store
