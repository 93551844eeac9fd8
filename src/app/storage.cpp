#include "finch/app/storage.hpp"

#include "finch/base/error.hpp"
#include "finch/base/log.hpp"

#include <utility>

namespace finch::app {

FileArchive::FileArchive(const store::RunDirectory& directory, const search::Space& space, store::ArchiveFacts facts,
                         store::RunLock& lock)
    : directory_(directory), space_(space), facts_(std::move(facts)), lock_(lock) {}

void FileArchive::event(const search::Event& event) {
    facts_.events.push_back(event);
}

void FileArchive::report(const search::WorkerReport& report) {
    lock_.heartbeat();
    search::WorkerReport& known = facts_.reports[{report.restart, report.worker}];
    if (report.time >= known.time) {
        known = report;
    }
}

bool FileArchive::write(const search::Population& population) {
    try {
        lock_.heartbeat();
        store::write_archive(directory_.archive(), space_, population, facts_);
        curves_kept_ = std::exchange(curves_in_newest_, {});
        for (const auto& [id, individual] : population.individuals()) {
            if (!individual.curve.empty()) {
                curves_in_newest_.push_back(id);
            }
        }
        return true;
    } catch (const ApiError& error) {
        spdlog::warn("{}", error.what());
        return false;
    }
}

}  // namespace finch::app
