#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"
#include "finch/base/replace.hpp"

#include "readers.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <span>
#include <system_error>
#include <unistd.h>
#include <zlib.h>

namespace finch::data {
namespace {

namespace fs = std::filesystem;

using Gzip = UniqueHandle<PointerTraits<gzFile, gzclose>>;

constexpr const char* how_to_get_mnist = "tools/fetch_mnist.sh DIR fetches MNIST, finch data generate DIR draws digits";
constexpr std::int64_t largest_packing = 1100;  // gzip packs 1032 bytes into one at best
constexpr std::int64_t chunk = 1 << 20;         // bytes read at once
constexpr std::uint8_t unsigned_byte = 8;       // IDX's code of its element type

constexpr std::array<const char*, 3> prefixes{"train", "validation", "t10k"};  // by Part

/// Returns the usual file names for `stem`: train-images-idx3-ubyte, train-images.idx3-ubyte, each plain or with .gz.
std::array<std::string, 4> usual_names(const std::string& stem, int dimensions) {
    const std::string plain = fmt::format("{}-idx{}-ubyte", stem, dimensions);
    const std::string dotted = fmt::format("{}.idx{}-ubyte", stem, dimensions);
    return {plain, dotted, plain + ".gz", dotted + ".gz"};
}

/// Returns the path of the first usual file name that exists in `folder`; empty if none exists.
fs::path find_file(const fs::path& folder, const std::string& stem, int dimensions) {
    for (const std::string& name : usual_names(stem, dimensions)) {
        if (fs::exists(folder / name)) {
            return folder / name;
        }
    }
    return {};
}

fs::path need_file(const fs::path& folder, const std::string& stem, int dimensions) {
    const fs::path found = find_file(folder, stem, dimensions);
    if (found.empty()) {
        const auto names = usual_names(stem, dimensions);
        refuse(folder, fmt::format("there is no {} (looked for {}, {}, and both with .gz); {}", stem, names[0],
                                   names[1], how_to_get_mnist));
    }
    return found;
}

/// A reader of an IDX file, plain or gzipped (zlib detects which). The file begins with the bytes {0, 0, type,
/// dimensions}. The size of each dimension follows as a big-endian 32-bit number, then the elements.
class IdxReader {
public:
    IdxReader(fs::path path, Memory memory)
        : path_(std::move(path)), file_bytes_(size_of(path_, memory)), file_(gzopen(path_.c_str(), "rb")) {
        if (!file_) {
            refuse(path_, fmt::format("cannot be opened ({})", std::generic_category().message(errno)));
        }
        gzbuffer(file_.get(), chunk);
    }

    /// Reads the size of each dimension from the header. Throws ConfigError unless there are `least` to `most`
    /// dimensions.
    std::vector<std::int64_t> header(std::size_t least, std::size_t most) {
        std::array<std::uint8_t, 4> magic{};
        need(read(magic), 4, "its header ends too early");
        if (magic[0] != 0 || magic[1] != 0) {
            refuse(path_, "is no IDX file: it does not begin with two zero bytes");
        }
        if (magic[2] != unsigned_byte) {
            refuse(path_, fmt::format("holds elements of type {:#04x}; expected 0x08, unsigned bytes", magic[2]));
        }
        if (magic[3] < least || magic[3] > most) {
            refuse(path_, fmt::format("has {} dimensions; expected {}", magic[3],
                                      least == most ? fmt::format("{}", least) : fmt::format("{} or {}", least, most)));
        }
        std::vector<std::int64_t> sizes(magic[3]);
        for (std::int64_t& size : sizes) {
            std::array<std::uint8_t, 4> word{};
            need(read(word), 4, "its header ends too early");
            size = (std::int64_t{word[0]} << 24) + (word[1] << 16) + (word[2] << 8) + word[3];
        }
        check_sizes(sizes);
        return sizes;
    }

    /// Reads the rest of the file, which must be exactly `count` bytes.
    std::vector<std::uint8_t> elements(std::int64_t count) {
        need_memory(path_, count);
        std::vector<std::uint8_t> bytes;
        bytes.reserve(static_cast<std::size_t>(std::min(count, file_bytes_)));  // a gzipped file's header may be wrong
        while (static_cast<std::int64_t>(bytes.size()) < count) {
            const std::size_t before = bytes.size();
            const auto wanted = std::min(chunk, count - static_cast<std::int64_t>(before));
            bytes.resize(before + static_cast<std::size_t>(wanted));
            const std::int64_t got = read(std::span(bytes).subspan(before));
            need(got, wanted,
                 fmt::format("ends too early: {} of {} elements", static_cast<std::int64_t>(before) + got, count));
        }
        std::array<std::uint8_t, 1> beyond{};
        if (read(beyond) != 0) {
            refuse(path_, fmt::format("has data after the {} elements that its header announces", count));
        }
        int code = Z_OK;  // a gzipped file without its last bytes, the checksum
        gzerror(file_.get(), &code);
        need(code, Z_OK, "ends too early: its checksum is missing");
        return bytes;
    }

    /// Returns the offset of the `count` elements in the file. Throws ConfigError if the file is gzipped.
    std::int64_t place_of_elements(std::int64_t count) {
        if (gzdirect(file_.get()) == 0) {
            refuse_to_stream(path_, "is gzipped", fmt::format("unpack it (gunzip {})", path_.string()));
        }
        const std::int64_t begin = gztell(file_.get());
        if (file_bytes_ != begin + count) {
            refuse(path_, fmt::format("has {} bytes behind its header, which announces {} elements; fetch it again",
                                      file_bytes_ - begin, count));
        }
        return begin;
    }

    [[nodiscard]] const fs::path& path() const noexcept { return path_; }

private:
    std::int64_t read(std::span<std::uint8_t> to) {
        const int got = gzread(file_.get(), to.data(), static_cast<unsigned>(to.size()));
        if (got < 0) {
            int code = 0;
            refuse(path_, fmt::format("cannot be unpacked ({}); fetch it again", gzerror(file_.get(), &code)));
        }
        return got;
    }
    void need(std::int64_t got, std::int64_t wanted, const std::string& problem) const {
        if (got != wanted) {
            refuse(path_, problem + "; fetch it again");
        }
    }
    void check_sizes(const std::vector<std::int64_t>& sizes) const {
        std::int64_t total = 1;
        for (const std::int64_t size : sizes) {
            if (size == 0 || __builtin_mul_overflow(total, size, &total)) {
                total = 0;
                break;
            }
        }
        const std::int64_t most = gzdirect(file_.get()) != 0 ? file_bytes_ : file_bytes_ * largest_packing;
        if (total == 0 || total > most) {
            refuse(path_, fmt::format("its header announces {} elements; expected at least one, and no more than a "
                                      "file of {} bytes can hold; fetch it again",
                                      fmt::join(sizes, " x "), file_bytes_));
        }
    }

    fs::path path_;
    std::int64_t file_bytes_;
    Gzip file_;
};

Dataset read_set(const fs::path& folder, const std::string& prefix, Memory memory) {
    IdxReader images(need_file(folder, prefix + "-images", 3), memory);
    IdxReader labels(need_file(folder, prefix + "-labels", 1), Memory::whole);
    const auto sizes = images.header(3, 4);
    const auto count = labels.header(1, 1).front();
    if (count != sizes[0]) {
        refuse(labels.path(),
               fmt::format("has {} labels, but {} has {} images", count, images.path().string(), sizes[0]));
    }
    Dataset set{.height = sizes[1], .width = sizes[2], .channels = sizes.size() == 4 ? sizes[3] : 1};
    const std::int64_t pixels = count * set.pixels_per_image();
    if (memory == Memory::streamed) {
        const std::int64_t begin = images.place_of_elements(pixels);
        stream(set, images.path(), {.offset = begin, .stride = set.bytes_per_image(), .images = count});
    } else {
        set.pixels = images.elements(pixels);
    }
    const auto bytes = labels.elements(count);
    set.labels.own().assign(bytes.begin(), bytes.end());
    return set;
}

/// Writes `bytes` into a new gzip file and syncs it.
void write_packed(const fs::path& path, std::span<const std::uint8_t> bytes) {
    const FileDescriptor file = make_file(path);
    const gzFile packed = file ? gzdopen(::dup(file.get()), "wb6") : nullptr;
    if (packed == nullptr) {
        throw_errno(path.string());
    }
    bool written = true;
    for (std::size_t at = 0; at < bytes.size() && written; at += chunk) {
        const auto size = static_cast<unsigned>(std::min<std::size_t>(chunk, bytes.size() - at));
        written = gzwrite(packed, bytes.data() + at, size) == static_cast<int>(size);
    }
    const bool closed = gzclose(packed) == Z_OK;
    if (!written || !closed || ::fsync(file.get()) != 0) {
        throw ApiError(fmt::format("{}: cannot be written; is the disk full?", path.string()));
    }
}

void write_file(const fs::path& path, const std::vector<std::int64_t>& sizes, std::span<const std::uint8_t> elements) {
    std::vector<std::uint8_t> bytes{0, 0, unsigned_byte, static_cast<std::uint8_t>(sizes.size())};
    for (const std::int64_t size : sizes) {
        for (const int shift : {24, 16, 8, 0}) {
            bytes.push_back(static_cast<std::uint8_t>(size >> shift));
        }
    }
    bytes.insert(bytes.end(), elements.begin(), elements.end());
    replace_file(path, [&bytes](const fs::path& beside) { write_packed(beside, bytes); }, {Predecessor::drop});
}

}  // namespace

std::optional<Dataset> read_idx(const fs::path& folder, Memory memory, Part part) {
    need_folder(folder, how_to_get_mnist);
    const std::string prefix = prefixes[static_cast<std::size_t>(part)];
    const bool is_there =
        !find_file(folder, prefix + "-images", 3).empty() || !find_file(folder, prefix + "-labels", 1).empty();
    return part == Part::training || is_there ? std::optional(read_set(folder, prefix, memory)) : std::nullopt;
}

void write_idx(const Dataset& set, const fs::path& images, const fs::path& labels) {
    std::vector<std::int64_t> sizes{set.samples(), set.height, set.width};
    if (set.channels != 1) {
        sizes.push_back(set.channels);
    }
    write_file(images, sizes, set.pixels);
    const std::vector<std::uint8_t> bytes(set.labels.begin(), set.labels.end());
    write_file(labels, {set.samples()}, bytes);
}

}  // namespace finch::data
