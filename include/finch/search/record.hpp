#pragma once

#include "finch/base/bytes.hpp"
#include "finch/search/individual.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>

namespace finch::search {

/// Home of an individual under migration: one register per individual, the larger tuple wins.
struct Home {
    std::uint32_t version = 0;
    std::int32_t writer = 0;
    std::int32_t island = 0;
    auto operator<=>(const Home&) const = default;
};
constexpr auto fields_of(const Home*) {
    return std::tuple{
        Field{"version", &Home::version, "counts its moves"},
        Field{"writer", &Home::writer, "the worker that wrote it"},
        Field{"island", &Home::island, "where it lives"},
    };
}
static_assert(lists_every_member<Home>);

/// Bred, and about to be trained.
struct Started {
    Individual individual;
};
/// Training has ended, whatever the outcome.
struct Result {
    Individual individual;
};
/// An individual moves (migration). Carries the individual for those who do not know it yet.
struct Move {
    Individual individual;
    Home home;
};
/// A copy travels (pollination).
struct Copy {
    Individual individual;
    std::int32_t island = 0;  ///< where to
};
/// Something worth telling the user afterwards: a start, a stop, a failure.
struct Event {
    double time = 0;
    std::int32_t worker = 0;
    std::string kind;
    std::string text;
};
constexpr auto fields_of(const Event*) {
    return std::tuple{
        Field{"time", &Event::time, "Unix seconds"},
        Field{"worker", &Event::worker, "that tells it"},
        Field{"kind", &Event::kind, "a word"},
        Field{"text", &Event::text, "what happened"}.long_text(),
    };
}
static_assert(lists_every_member<Event>);
/// Place and progress of a worker in this start of the run; the latest report of a (restart, worker) wins.
struct WorkerReport {
    std::uint32_t restart = 0;
    std::int32_t worker = 0;
    std::int32_t island = 0;
    std::int32_t ranks = 0;
    std::int32_t threads = 0;
    std::string node;
    std::string device;
    double time = 0;
    double up_seconds = 0;
    double busy_seconds = 0;
    std::int64_t evaluations = 0;
};
constexpr auto fields_of(const WorkerReport*) {
    return std::tuple{
        Field{"restart", &WorkerReport::restart, "start of the run"},
        Field{"worker", &WorkerReport::worker, "its number"},
        Field{"island", &WorkerReport::island, "that it works for"},
        Field{"ranks", &WorkerReport::ranks, "of the worker"},
        Field{"threads", &WorkerReport::threads, "of one rank"},
        Field{"node", &WorkerReport::node, "of its leader"},
        Field{"device", &WorkerReport::device, "of its leader"},
        Field{"time", &WorkerReport::time, "of this report, Unix seconds"},
        Field{"up_seconds", &WorkerReport::up_seconds, "since the worker began"},
        Field{"busy_seconds", &WorkerReport::busy_seconds, "of them training"},
        Field{"evaluations", &WorkerReport::evaluations, "that ended"},
    };
}
static_assert(lists_every_member<WorkerReport>);
/// The individual to evaluate again, with its genome, which the receiver may not know. Id 0: none.
struct Repeat {
    Id of;
    Genome genome;
};
constexpr auto fields_of(const Repeat*) {
    return std::tuple{
        Field{"of", &Repeat::of, "the individual that is evaluated again; 0: none"},
        Field{"genome", &Repeat::genome, "its genes"},
    };
}
static_assert(lists_every_member<Repeat>);
/// Message about leases between a leader and world rank 0; never in a journal.
struct LeaseMessage {
    enum class Kind : std::uint32_t { request, grant, exhausted, give_back, done };
    Kind kind = Kind::request;
    std::int32_t worker = 0;
    std::int64_t count = 0;
    double seconds_per_evaluation = 0;  ///< request: what the asker measured, 0 if nothing yet
    Repeat repeat = {};                 ///< grant: what the one evaluation is for
};
constexpr auto fields_of(const LeaseMessage*) {
    return std::tuple{
        Field{"kind", &LeaseMessage::kind, "of message"},
        Field{"worker", &LeaseMessage::worker, "that asks or is answered"},
        Field{"count", &LeaseMessage::count, "of evaluations"},
        Field{"seconds_per_evaluation", &LeaseMessage::seconds_per_evaluation, "that the asker measured"},
        Field{"repeat", &LeaseMessage::repeat, "the individual that the evaluation repeats"},
    };
}
static_assert(lists_every_member<LeaseMessage>);
/// World rank 0 to a leader: the first `records` of this start's journal records are in a synced archive and its
/// predecessor.
struct Archived {
    std::uint64_t records = 0;
    double seconds = 0;  ///< that the archive took
};
constexpr auto fields_of(const Archived*) {
    return std::tuple{
        Field{"records", &Archived::records, "of this start"},
        Field{"seconds", &Archived::seconds, "that the archive took"},
    };
}
static_assert(lists_every_member<Archived>);
/// World rank 0 to all leaders: save what runs and start nothing more. `end_running`: a budget is used, so that the run
/// is complete; else it is stopped, to be resumed.
struct Halt {
    bool end_running = false;
    std::string why;
};
constexpr auto fields_of(const Halt*) {
    return std::tuple{
        Field{"end_running", &Halt::end_running, "the run is complete"},
        Field{"why", &Halt::why, "in words"},
    };
}
static_assert(lists_every_member<Halt>);

/// A leader lives, though it has nothing to tell; never in a journal.
struct Alive {
    double seconds = 0;  ///< if not 0: something begins now, so the next sign of life may take so long
};
constexpr auto fields_of(const Alive*) {
    return std::tuple{
        Field{"seconds", &Alive::seconds, "until the next sign of life"},
    };
}
static_assert(lists_every_member<Alive>);

/// A record's place in this list, from 1, is its kind in the bytes: append only.
using Record = std::variant<Started, Result, Move, Copy, Event, WorkerReport, LeaseMessage, Archived, Halt, Alive>;

/// The individual that a record is about; null: none.
template <class SomeRecord>
requires std::same_as<std::remove_const_t<SomeRecord>, Record>
[[nodiscard]] auto* individual_of(SomeRecord& record) noexcept {
    using Found = std::conditional_t<std::is_const_v<SomeRecord>, const Individual, Individual>;
    return std::visit(
        [](auto& kind) -> Found* {
            if constexpr (requires { kind.individual; }) {
                return &kind.individual;
            }
            return nullptr;
        },
        record);
}

/// A record as it travels and as it is journaled: {magic, kind, version, length, run, CRC-32C of these and the body}
/// and the body. Only a Result carries its curve. Throws Error if the body is longer than 64 MiB.
[[nodiscard]] Bytes encode(const Record& record, std::uint64_t run);

/// Walks over encoded records. A torn last record ends it; a damaged one before it is named and skipped. After damage
/// it resumes at the next place where a whole record with a right CRC begins, so a damaged length costs no other
/// record.
class RecordReader {
public:
    /// `source` is the file's name, for the messages. Records of another run are named and skipped.
    RecordReader(std::span<const std::byte> bytes, std::uint64_t run, std::string source);

    /// The next whole record, or nothing at the end.
    [[nodiscard]] std::optional<Record> next();
    /// How many bytes from the start hold whole records: what lies behind is a torn end to be cut off.
    [[nodiscard]] std::size_t good_bytes() const noexcept { return good_bytes_; }
    /// Descriptions of the damage, one entry per damaged place.
    [[nodiscard]] const std::vector<std::string>& problems() const noexcept { return problems_; }

private:
    bool skip_damage();
    void note(std::string problem);
    [[nodiscard]] std::optional<Record> understand(std::size_t begin);

    std::span<const std::byte> bytes_;
    std::uint64_t run_;
    std::string source_;
    std::size_t at_ = 0;
    std::size_t good_bytes_ = 0;
    std::size_t tried_bytes_ = 0;  ///< without success, by skip_damage()
    bool in_other_run_ = false;
    std::vector<std::string> problems_;
};

}  // namespace finch::search
