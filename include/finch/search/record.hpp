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

/// The home register of an individual under migration, which names the island where the individual is now. If there are
/// two versions of a register, the larger tuple wins.
struct Home {
    std::uint32_t version = 0;
    std::int32_t writer = 0;
    std::int32_t island = 0;
    auto operator<=>(const Home&) const = default;
};
constexpr auto fields_of(const Home*) {
    return std::tuple{
        Field{"version", &Home::version, "number of its moves so far"},
        Field{"writer", &Home::writer, "the worker that recorded the last move"},
        Field{"island", &Home::island, "the island where it is now"},
    };
}
static_assert(lists_every_member<Home>);

/// Record: an individual was bred and is about to be trained.
struct Started {
    Individual individual;
};
/// Record: the training of an individual has ended, regardless of the outcome.
struct Result {
    Individual individual;
};
/// Record: an individual moves to another island (migration). The record contains the individual, because the receiver
/// may not know it yet.
struct Move {
    Individual individual;
    Home home;
};
/// Record: a copy of an individual goes to another island (pollination).
struct Copy {
    Individual individual;
    std::int32_t island = 0;  ///< the target island
};
/// Record: an event that the user should be able to read afterwards, for example a start, a stop or a failure.
struct Event {
    double time = 0;
    std::int32_t worker = 0;
    std::string kind;
    std::string text;
};
constexpr auto fields_of(const Event*) {
    return std::tuple{
        Field{"time", &Event::time, "time of the event, Unix seconds"},
        Field{"worker", &Event::worker, "the worker that recorded the event"},
        Field{"kind", &Event::kind, "kind of event, one word"},
        Field{"text", &Event::text, "description of the event"}.long_text(),
    };
}
static_assert(lists_every_member<Event>);
/// Record: place and progress of a worker in this start of the run. The latest report of each (restart, worker) wins.
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
        Field{"restart", &WorkerReport::restart, "start of the run; 0 is the first"},
        Field{"worker", &WorkerReport::worker, "number of the worker, from 0"},
        Field{"island", &WorkerReport::island, "island of the worker"},
        Field{"ranks", &WorkerReport::ranks, "number of ranks of the worker"},
        Field{"threads", &WorkerReport::threads, "number of threads of one rank"},
        Field{"node", &WorkerReport::node, "node of the worker's leader"},
        Field{"device", &WorkerReport::device, "device of the worker's leader"},
        Field{"time", &WorkerReport::time, "time of this report, Unix seconds"},
        Field{"up_seconds", &WorkerReport::up_seconds, "time since the worker began, in seconds"},
        Field{"busy_seconds", &WorkerReport::busy_seconds, "part of up_seconds in which the worker trained"},
        Field{"evaluations", &WorkerReport::evaluations,
              "number of evaluations that ended on the worker in this start"},
    };
}
static_assert(lists_every_member<WorkerReport>);
/// An individual that is to be evaluated again. The genome is included, because the receiver may not know the
/// individual. An id of 0 means no individual.
struct Repeat {
    Id of;
    Genome genome;
};
constexpr auto fields_of(const Repeat*) {
    return std::tuple{
        Field{"of", &Repeat::of, "id of the individual to evaluate again; 0: none"},
        Field{"genome", &Repeat::genome, "genes of the individual"},
    };
}
static_assert(lists_every_member<Repeat>);
/// A message about leases between a leader and world rank 0. A lease is a number of evaluations that a leader may
/// start. Lease messages are never journaled.
struct LeaseMessage {
    enum class Kind : std::uint32_t { request, grant, exhausted, give_back, done };
    Kind kind = Kind::request;
    std::int32_t worker = 0;
    std::int64_t count = 0;
    double seconds_per_evaluation = 0;  ///< in a request: as measured by the sender; 0 if nothing was measured yet
    Repeat repeat = {};                 ///< in a grant: the individual that the one evaluation repeats
};
constexpr auto fields_of(const LeaseMessage*) {
    return std::tuple{
        Field{"kind", &LeaseMessage::kind, "kind of message"},
        Field{"worker", &LeaseMessage::worker, "the worker that sends the request or gets the answer"},
        Field{"count", &LeaseMessage::count, "number of evaluations"},
        Field{"seconds_per_evaluation", &LeaseMessage::seconds_per_evaluation,
              "seconds per evaluation, as the worker measured"},
        Field{"repeat", &LeaseMessage::repeat, "individual that the evaluation repeats"},
    };
}
static_assert(lists_every_member<LeaseMessage>);
/// A message from world rank 0 to a leader: the first `records` records of this start's journal are in a synced archive
/// and in the archive before it.
struct Archived {
    std::uint64_t records = 0;
    double seconds = 0;  ///< time that writing the archive took
};
constexpr auto fields_of(const Archived*) {
    return std::tuple{
        Field{"records", &Archived::records, "number of archived records of this start"},
        Field{"seconds", &Archived::seconds, "time that writing the archive took, in seconds"},
    };
}
static_assert(lists_every_member<Archived>);
/// A message from world rank 0 to all leaders: save the running trainings and start no new ones. If `end_running` is
/// true, a budget is used up and the run is complete. If `end_running` is false, the run is stopped and can be resumed.
struct Halt {
    bool end_running = false;
    std::string why;
};
constexpr auto fields_of(const Halt*) {
    return std::tuple{
        Field{"end_running", &Halt::end_running, "whether the run is complete"},
        Field{"why", &Halt::why, "reason, in words"},
    };
}
static_assert(lists_every_member<Halt>);

/// A heartbeat of a leader that has nothing else to send. Heartbeats are never journaled.
struct Alive {
    double seconds = 0;  ///< if not 0: a long operation begins, and the next heartbeat may take this long
};
constexpr auto fields_of(const Alive*) {
    return std::tuple{
        Field{"seconds", &Alive::seconds, "longest time until the next heartbeat, in seconds; 0: the usual time"},
    };
}
static_assert(lists_every_member<Alive>);

/// The position of a record type in this list, from 1, is its kind in the encoded bytes. New types may only be
/// appended.
using Record = std::variant<Started, Result, Move, Copy, Event, WorkerReport, LeaseMessage, Archived, Halt, Alive>;

/// Returns the individual that a record is about, or null.
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

/// Encodes a record for messages and journals: a header, then the body. The header is {magic, kind, version, length,
/// run, CRC-32C of the other header fields and the body}. Only a Result includes the learning curve. Throws Error if
/// the body is longer than 64 MiB.
[[nodiscard]] Bytes encode(const Record& record, std::uint64_t run);

/// Iterates over encoded records. An incomplete last record ends the iteration. Any other damaged record is reported
/// and skipped. After damage, reading resumes at the next complete record with a correct CRC, so a damaged length field
/// loses no other record.
class RecordReader {
public:
    /// `source`: the file name for messages. Records of another run are reported and skipped.
    RecordReader(std::span<const std::byte> bytes, std::uint64_t run, std::string source);

    /// Returns the next complete record, or nothing at the end.
    [[nodiscard]] std::optional<Record> next();
    /// Returns the number of bytes up to the end of the last complete record. Bytes behind the last complete record
    /// should be cut off.
    [[nodiscard]] std::size_t good_bytes() const noexcept { return good_bytes_; }
    /// Returns descriptions of the damage, one per damaged place.
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
    std::size_t tried_bytes_ = 0;  ///< bytes that skip_damage() checked without finding a record
    bool in_other_run_ = false;
    std::vector<std::string> problems_;
};

}  // namespace finch::search
