#include "finch/run/storage.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/log.hpp"
#include "finch/base/replace.hpp"

#include <limits>
#include <utility>

namespace finch::run {

void FileJournal::write(const Bytes& record) {
    if (!journal_) {
        journal_.emplace(path_, run_, store::JournalOptions{.sync_seconds = sync_seconds_});
    }
    journal_->write(record);
}

void FileJournal::sync(bool now) {
    if (journal_) {
        journal_->sync(now);
    }
}

void FileJournal::forget(std::uint64_t records) {
    if (journal_) {
        journal_->forget(records);
    }
}

void FileJournal::forget_all() {
    forget(std::numeric_limits<std::uint64_t>::max());
}

FileArchive::FileArchive(const store::RunDirectory& directory, const search::Space& space, store::ArchiveFacts facts,
                         store::RunLock& lock, Written written)
    : directory_(directory),
      space_(space),
      facts_(std::move(facts)),
      lock_(lock),
      began_(steady_seconds()),
      written_(std::move(written)) {}

void FileArchive::event(const search::Event& event) {
    facts_.events.push_back(event);
}

void FileArchive::report(const search::WorkerReport& report) {
    try {
        lock_.heartbeat();
    } catch (const StorageError& error) {
        spdlog::warn("{}", error.what());  // write() tries it again
    }
    facts_.merge(report);
}

bool FileArchive::write(const search::Population& population) {
    try {
        lock_.renew();
        if (!facts_.starts.empty()) {
            facts_.starts.back().seconds = steady_seconds() - began_;
        }
        // A large archive takes longer to write than a heartbeat is valid, so write_archive() sends one in between.
        store::write_archive(directory_.archive(), space_, population, facts_, [this] { lock_.heartbeat(); });
        curves_kept_ = std::exchange(curves_in_newest_, {});
        for (const auto& [id, individual] : population.individuals()) {
            if (!individual.curve.empty()) {
                curves_in_newest_.push_back(id);
            }
        }
        is_current_ = true;
        written_(population, facts_);
    } catch (const ApiError& error) {
        spdlog::warn("{}", error.what());
        is_current_ = false;
    }
    return is_current_;
}

void FileArchive::complete_previous() {
    try {
        lock_.heartbeat();
        copy_to_previous(directory_.archive());
    } catch (const ApiError& error) {
        spdlog::warn("{}", error.what());
        is_current_ = false;
    }
}

}  // namespace finch::run
