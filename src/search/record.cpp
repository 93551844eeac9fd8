#include "finch/search/record.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace finch::search {
namespace {

constexpr std::array<std::byte, 4> magic{std::byte{'F'}, std::byte{'N'}, std::byte{'C'}, std::byte{'H'}};
constexpr std::uint16_t version = individual_version;
constexpr std::uint32_t most_body_bytes = 64U << 20;
/// Limits the search for the next record in damaged data: the number of bytes in failed CRC checks, divided by the size
/// of the file. Without a limit, many overlapping bodies might be checked, because each place that looks like a header
/// contains some length.
constexpr std::size_t most_tries = 64;
constexpr std::size_t most_problems = 1000;

/// The header before the body of each record: these members, in this order, without padding.
struct Header {
    std::array<std::byte, 4> magic;
    std::uint16_t kind;
    std::uint16_t version;
    std::uint32_t length;  ///< of the body, in bytes
    std::uint64_t run;
    std::uint32_t crc;  ///< of everything before it and of the body
};
constexpr std::size_t length_at = 8;
constexpr std::size_t crc_at = 20;
constexpr std::size_t header_bytes = 24;

void put_header(const Header& header, ByteWriter& writer) {
    writer.put(header.magic);
    writer.put(header.kind);
    writer.put(header.version);
    writer.put(header.length);
    writer.put(header.run);
    writer.put(header.crc);
}

/// Reads the header at the beginning of `bytes`, which must contain one.
Header get_header(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    Header header{};
    header.magic = reader.get<std::array<std::byte, 4>>();
    header.kind = reader.get<std::uint16_t>();
    header.version = reader.get<std::uint16_t>();
    header.length = reader.get<std::uint32_t>();
    header.run = reader.get<std::uint64_t>();
    header.crc = reader.get<std::uint32_t>();
    return header;
}

std::uint32_t crc_of(std::span<const std::byte> record) {
    return crc32c(record.subspan(header_bytes), crc32c(record.first(crc_at)));
}

/// Returns the size in bytes of the record at the beginning of `bytes`; 0 if no complete, undamaged record begins
/// there.
std::size_t whole_record(std::span<const std::byte> bytes) {
    if (bytes.size() < header_bytes) {
        return 0;
    }
    const Header header = get_header(bytes);
    if (header.magic != magic || header.length > most_body_bytes || header.length > bytes.size() - header_bytes) {
        return 0;
    }
    const std::size_t size = header_bytes + header.length;
    return crc_of(bytes.first(size)) == header.crc ? size : 0;
}

/// Returns the number of body bytes that whole_record() reads to check the CRC.
std::size_t checked_bytes(std::span<const std::byte> bytes) {
    if (bytes.size() < header_bytes) {
        return 0;
    }
    const Header header = get_header(bytes);
    return header.magic == magic && header.length <= bytes.size() - header_bytes ? header.length : 0;
}

/// Returns whether `rest` looks like the beginning of a record that was not written completely.
bool is_torn(std::span<const std::byte> rest) {
    const std::size_t known = std::min(rest.size(), magic.size());
    if (!std::equal(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(known), magic.begin())) {
        return false;
    }
    return rest.size() < header_bytes || get_header(rest).length > rest.size() - header_bytes;
}

/// Writes the body of a record: its individual, if it has one, then its other members. Only a Result includes the
/// learning curve.
template <class Kind>
void put(const Kind& record, Bytes& out) {
    ByteWriter writer(out);
    if constexpr (Recorded<Kind>) {
        put_value(writer, record);
    } else {
        write_individual(record.individual, std::same_as<Kind, Result>, out);
    }
    if constexpr (std::same_as<Kind, Move>) {
        put_value(writer, record.home);
    } else if constexpr (std::same_as<Kind, Copy>) {
        put_value(writer, record.island);
    }
}

template <class Kind>
void get(ByteReader& reader, Kind& record, std::uint16_t written_in) {
    if constexpr (Recorded<Kind>) {
        get_value(reader, record, written_in);
    } else {
        record.individual = read_individual(reader, written_in);
    }
    if constexpr (std::same_as<Kind, Move>) {
        get_value(reader, record.home, written_in);
    } else if constexpr (std::same_as<Kind, Copy>) {
        get_value(reader, record.island, written_in);
    } else if constexpr (std::same_as<Kind, LeaseMessage>) {
        if (record.kind > LeaseMessage::Kind::done) {
            throw FileError(fmt::format("{} is no kind of lease message", static_cast<std::uint32_t>(record.kind)));
        }
    }
}

template <class Kind>
Record read_body(ByteReader& reader, std::uint16_t written_in) {
    Kind record;
    get(reader, record, written_in);
    if (reader.left() != 0) {
        throw FileError(fmt::format("{} bytes too many", reader.left()));
    }
    return record;
}

/// Returns one function per kind of record, in the order of Record. Each function reads the body of its kind.
template <std::size_t... kind>
constexpr auto make_body_readers(std::index_sequence<kind...>) {
    return std::array{&read_body<std::variant_alternative_t<kind, Record>>...};
}
constexpr auto body_readers = make_body_readers(std::make_index_sequence<std::variant_size_v<Record>>());

}  // namespace

Bytes encode(const Record& record, std::uint64_t run) {
    Bytes bytes;
    bytes.reserve(512);
    ByteWriter writer(bytes);
    put_header({magic, static_cast<std::uint16_t>(record.index() + 1), version, 0, run, 0}, writer);
    std::visit([&bytes](const auto& kind) { put(kind, bytes); }, record);
    if (bytes.size() - header_bytes > most_body_bytes) {
        throw Error(fmt::format("a record of {} bytes is too long", bytes.size()));
    }
    const auto length = static_cast<std::uint32_t>(bytes.size() - header_bytes);
    std::memcpy(bytes.data() + length_at, &length, sizeof length);
    const std::uint32_t crc = crc_of(bytes);
    std::memcpy(bytes.data() + crc_at, &crc, sizeof crc);
    return bytes;
}

RecordReader::RecordReader(std::span<const std::byte> bytes, std::uint64_t run, std::string source)
    : bytes_(bytes), run_(run), source_(std::move(source)) {}

std::optional<Record> RecordReader::next() {
    while (at_ < bytes_.size()) {
        const std::size_t size = whole_record(bytes_.subspan(at_));
        if (size == 0) {
            if (!skip_damage()) {
                break;
            }
            continue;
        }
        const std::size_t begin = at_;
        at_ += size;
        good_bytes_ = at_;
        if (auto record = understand(begin)) {
            return record;
        }
    }
    return std::nullopt;
}

void RecordReader::note(std::string problem) {
    if (problems_.size() < most_problems) {
        problems_.push_back(std::move(problem));
    } else if (problems_.size() == most_problems) {
        problems_.push_back(source_ + ": and more");
    }
}

/// Moves `at_` to the next complete record, or to the end. Returns whether a complete record was found.
bool RecordReader::skip_damage() {
    const std::size_t begin = at_;
    const auto at_next = [&](std::size_t from) {
        const auto start = bytes_.begin() + static_cast<std::ptrdiff_t>(from);
        return static_cast<std::size_t>(std::search(start, bytes_.end(), magic.begin(), magic.end()) - bytes_.begin());
    };
    do {
        tried_bytes_ += checked_bytes(bytes_.subspan(at_));
        at_ = tried_bytes_ / most_tries > bytes_.size() ? bytes_.size() : at_next(at_ + 1);
    } while (at_ < bytes_.size() && whole_record(bytes_.subspan(at_)) == 0);
    const bool is_end = at_ == bytes_.size();
    if (!is_end || !is_torn(bytes_.subspan(begin))) {
        note(fmt::format("{}: {} bytes from byte {} on are damaged, skipped", source_, at_ - begin, begin));
    }
    return !is_end;
}

/// Decodes the complete record at `begin`. If the record belongs to another run or cannot be read, notes this and
/// returns nothing.
std::optional<Record> RecordReader::understand(std::size_t begin) {
    const Header header = get_header(bytes_.subspan(begin));
    if (header.run != run_) {
        if (!std::exchange(in_other_run_, true)) {
            note(fmt::format("{}: from byte {} on are records of another run, skipped", source_, begin));
        }
        return std::nullopt;
    }
    in_other_run_ = false;
    if (header.version < 1 || header.version > version || header.kind < 1 || header.kind > body_readers.size()) {
        note(fmt::format("{}: the record at byte {} has kind {} and version {}, unknown here, skipped", source_, begin,
                         header.kind, header.version));
        return std::nullopt;
    }
    try {
        ByteReader reader(bytes_.subspan(begin + header_bytes, header.length));
        return body_readers[header.kind - 1U](reader, header.version);
    } catch (const FileError& error) {
        note(fmt::format("{}: the record at byte {} cannot be read ({}), skipped", source_, begin, error.what()));
        return std::nullopt;
    }
}

}  // namespace finch::search
