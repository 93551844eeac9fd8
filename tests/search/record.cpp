#include "finch/search/record.hpp"

#include "search/samples.hpp"

#include <cstring>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

constexpr std::uint64_t run = 0x1234'5678'9ABC'DEF0;

std::vector<Record> one_of_each() {
    Individual with_magic = evaluated(4, 0.5, 1);
    with_magic.problem = "FNCH FNCH";  // the reader must not take this for a record header
    return {Started{bred(1)},
            Result{complete(2)},
            Move{evaluated(3, 0.5), {4, 5, 6}},
            Copy{with_magic, 7},
            Event{1.5, 2, "stop", "USR2"},
            WorkerReport{1, 2, 3, 4, 5, "n01", "cpu", 6, 7, 8, 9},
            LeaseMessage{LeaseMessage::Kind::give_back, 3, 4, 0.5},
            Archived{77},
            Halt{true, "the target loss is reached"}};
}

struct Journal {
    std::vector<Bytes> records;
    std::vector<std::size_t> begins;  ///< first byte of each record; the last element is the end of the journal
    Bytes bytes;
};

Journal make_journal() {
    Journal journal;
    for (const Record& record : one_of_each()) {
        journal.records.push_back(encode(record, run));
        journal.begins.push_back(journal.bytes.size());
        journal.bytes.insert(journal.bytes.end(), journal.records.back().begin(), journal.records.back().end());
    }
    journal.begins.push_back(journal.bytes.size());
    return journal;
}

struct Reading {
    std::vector<Bytes> records;  ///< encoded again, to make them comparable
    std::vector<std::string> problems;
    std::size_t good_bytes = 0;
};

Reading read(std::span<const std::byte> bytes) {
    RecordReader reader(bytes, run, "a.journal");
    Reading reading;
    while (const auto record = reader.next()) {
        reading.records.push_back(encode(*record, run));
    }
    CHECK_FALSE(reader.next().has_value());
    reading.problems = reader.problems();
    reading.good_bytes = reader.good_bytes();
    return reading;
}

std::vector<Bytes> without(std::vector<Bytes> records, std::size_t index) {
    records.erase(records.begin() + static_cast<std::ptrdiff_t>(index));
    return records;
}

}  // namespace

TEST_CASE("RecordReader: records of every kind keep all their fields") {
    const Journal journal = make_journal();
    RecordReader reader(journal.bytes, run, "a.journal");
    const auto next = [&reader] { return reader.next().value(); };

    CHECK(identical(std::get<Started>(next()).individual, bred(1)));
    CHECK(identical(std::get<Result>(next()).individual, complete(2)));
    const auto move = std::get<Move>(next());
    CHECK(identical(move.individual, evaluated(3, 0.5)));
    CHECK(move.home == Home{4, 5, 6});
    CHECK(std::get<Copy>(next()).island == 7);
    const auto event = std::get<Event>(next());
    CHECK(event.time == 1.5);
    CHECK(event.worker == 2);
    CHECK(event.kind == "stop");
    CHECK(event.text == "USR2");
    const auto report = std::get<WorkerReport>(next());
    CHECK(report.restart == 1);
    CHECK(report.threads == 5);
    CHECK(report.node == "n01");
    CHECK(report.device == "cpu");
    CHECK(report.busy_seconds == 8);
    CHECK(report.evaluations == 9);
    const auto message = std::get<LeaseMessage>(next());
    CHECK(message.kind == LeaseMessage::Kind::give_back);
    CHECK(message.worker == 3);
    CHECK(message.count == 4);
    CHECK(message.seconds_per_evaluation == 0.5);
    CHECK(std::get<Archived>(next()).records == 77);
    const auto halt = std::get<Halt>(next());
    CHECK(halt.end_running);
    CHECK(halt.why == "the target loss is reached");
    CHECK_FALSE(reader.next().has_value());
    CHECK(reader.problems().empty());
    CHECK(reader.good_bytes() == journal.bytes.size());
}

TEST_CASE("encode: only a Result record contains the learning curve") {
    const auto curve_of = [](const Record& record) {
        const Bytes bytes = encode(record, run);
        return std::visit(
            [](const auto& kind) -> std::size_t {
                if constexpr (requires { kind.individual; }) {
                    return kind.individual.curve.size();
                }
                return 99;
            },
            RecordReader(bytes, run, "a message").next().value());
    };

    CHECK(curve_of(Result{complete(1)}) == 2);
    CHECK(curve_of(Started{complete(1)}) == 0);
    CHECK(curve_of(Move{complete(1), {1, 0, 0}}) == 0);
    CHECK(curve_of(Copy{complete(1), 0}) == 0);
}

TEST_CASE("RecordReader: a truncated journal gives all whole records, and good_bytes is the length to keep") {
    const Journal journal = make_journal();

    for (std::size_t length = 0; length <= journal.bytes.size(); ++length) {
        std::size_t whole = 0;
        while (whole < journal.records.size() && journal.begins[whole + 1] <= length) {
            ++whole;
        }
        const Bytes cut(journal.bytes.begin(), journal.bytes.begin() + static_cast<std::ptrdiff_t>(length));

        const Reading reading = read(cut);

        CHECK(reading.records ==
              std::vector(journal.records.begin(), journal.records.begin() + static_cast<std::ptrdiff_t>(whole)));
        CHECK(reading.good_bytes == journal.begins[whole]);
        CHECK(reading.problems.empty());
    }
}

TEST_CASE("RecordReader: a corrupted byte loses only its own record, and a problem names the file") {
    const Journal journal = make_journal();

    for (const int flip : {0x01, 0x80, 0xFF}) {
        for (std::size_t at = 0; at < journal.bytes.size(); ++at) {
            std::size_t hit = 0;
            while (journal.begins[hit + 1] <= at) {
                ++hit;
            }
            Bytes damaged = journal.bytes;
            damaged[at] ^= static_cast<std::byte>(flip);

            const Reading reading = read(damaged);

            REQUIRE(reading.records == without(journal.records, hit));
            const bool is_last = hit + 1 == journal.records.size();
            CHECK(reading.good_bytes == (is_last ? journal.begins[hit] : journal.bytes.size()));
            if (!is_last) {  // in the last record, a larger length looks like a record that was only partly written
                REQUIRE(reading.problems.size() == 1);
                CHECK(reading.problems[0].find("a.journal") == 0);
            }
        }
    }
}

TEST_CASE("RecordReader: finds a record even if the corrupted length of the previous record points exactly behind it") {
    const Journal journal = make_journal();
    Bytes damaged = journal.bytes;
    const auto both = static_cast<std::uint32_t>(journal.begins[2] - 24);
    std::memcpy(damaged.data() + 8, &both, sizeof both);

    CHECK(read(damaged).records == without(journal.records, 0));
}

TEST_CASE("RecordReader: reads a file of 100 000 false headers without quadratic time") {
    constexpr std::size_t beginnings = 100000;
    const Bytes record = encode(one_of_each().front(), run);
    Bytes bytes;
    for (std::size_t i = 0; i < beginnings; ++i) {
        const auto length = static_cast<std::uint32_t>((beginnings - i - 1) * 24);
        Bytes header(record.begin(), record.begin() + 24);
        std::memcpy(header.data() + 8, &length, sizeof length);
        bytes.insert(bytes.end(), header.begin(), header.end());
    }

    const Reading reading = read(bytes);

    CHECK(reading.records.empty());
    CHECK(reading.problems == std::vector<std::string>{"a.journal: 2400000 bytes from byte 0 on are damaged, skipped"});
}

TEST_CASE("RecordReader: missing, inserted or zeroed bytes lose only the records that contain them") {
    const Journal journal = make_journal();
    const auto place = [](std::size_t at) { return static_cast<std::ptrdiff_t>(at); };

    Bytes missing = journal.bytes;
    missing.erase(missing.begin() + place(journal.begins[1] + 3), missing.begin() + place(journal.begins[1] + 40));
    CHECK(read(missing).records == without(journal.records, 1));

    for (const std::size_t length : {1, 5, 1000}) {
        Bytes inserted = journal.bytes;
        inserted.insert(inserted.begin() + place(journal.begins[3]), length, std::byte{'F'});
        const Reading with_inserted = read(inserted);
        CHECK(with_inserted.records == journal.records);
        CHECK(with_inserted.problems.size() == 1);
    }

    Bytes zeroed = journal.bytes;
    zeroed.insert(zeroed.end(), 4096, std::byte{0});  // a file system can leave zeros in a file after a node failure
    const Reading with_zeros = read(zeroed);
    CHECK(with_zeros.records == journal.records);
    CHECK(with_zeros.good_bytes == journal.bytes.size());
    CHECK(with_zeros.problems.size() == 1);
}

TEST_CASE("RecordReader: random bytes give no records and no crash") {
    RandomStream random(1, Purpose::test);

    for (int i = 0; i < 200; ++i) {
        Bytes bytes(random.below(300));
        for (std::byte& byte : bytes) {
            byte = static_cast<std::byte>(random.bits() & 0xFF);
        }
        for (std::size_t at = 0; at + 12 <= bytes.size(); at += 50) {  // insert headers that look valid
            std::memcpy(bytes.data() + at, "FNCH\1\0\1\0", 8);
            const auto length = static_cast<std::uint32_t>(random.below(200));
            std::memcpy(bytes.data() + at + 8, &length, sizeof length);
        }
        CHECK(read(bytes).records.empty());
    }
}

TEST_CASE("RecordReader: records of another run are skipped and reported once") {
    Bytes bytes = encode(Archived{1}, run);
    for (std::uint64_t i = 0; i < 3; ++i) {
        const Bytes foreign = encode(Archived{2}, run + 1);
        bytes.insert(bytes.end(), foreign.begin(), foreign.end());
    }

    const Reading reading = read(bytes);

    CHECK(reading.records == std::vector<Bytes>{encode(Archived{1}, run)});
    CHECK(reading.problems.size() == 1);
    CHECK(reading.good_bytes == bytes.size());
}

TEST_CASE("RecordReader: skips and reports records with an unknown kind or version or an impossible body") {
    const auto sealed = [](Bytes record) {  // corrects the CRC: bytes 20 to 23, computed over all other bytes
        const std::uint32_t crc = crc32c(std::span(record).subspan(24), crc32c(std::span(record).first(20)));
        std::memcpy(record.data() + 20, &crc, sizeof crc);
        return record;
    };
    Bytes unknown_kind = encode(Archived{1}, run);
    unknown_kind[4] = std::byte{200};
    Bytes no_kind = encode(Archived{1}, run);
    no_kind[4] = std::byte{0};
    Bytes newer = encode(Archived{1}, run);
    newer[6] = std::byte{99};
    Bytes impossible = encode(LeaseMessage{}, run);
    impossible[24] = std::byte{99};
    Bytes too_long = encode(Archived{1}, run);
    too_long.push_back(std::byte{0});
    too_long[8] = std::byte{9};

    for (const Bytes& wrong : {unknown_kind, no_kind, newer, impossible, too_long}) {
        Bytes bytes = sealed(wrong);
        const Bytes good = encode(Archived{5}, run);
        bytes.insert(bytes.end(), good.begin(), good.end());

        const Reading reading = read(bytes);

        CHECK(reading.records == std::vector<Bytes>{good});
        CHECK(reading.problems.size() == 1);
        CHECK(reading.good_bytes == bytes.size());
    }
}
