// The format of torch.save(): serialize_tensor() in torch/serialization.py, APPNOTE 6.3 of the zip format, and protocol
// 2 of Python's pickle (pickletools.py lists the operations).
#include "finch/base/format.hpp"
#include "finch/pytorch/state_dict.hpp"

#include "tensor.hpp"

#include <array>
#include <limits>
#include <string>
#include <utility>

namespace finch::pytorch {
namespace {

constexpr std::size_t alignment = 64;  ///< of a tensor's values in the archive, as torch.save() aligns them
constexpr std::string_view module_dict = "collections\nOrderedDict\n";

constexpr std::array<std::uint32_t, 256> make_crc_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value & 1U) != 0 ? 0xEDB88320U ^ (value >> 1U) : value >> 1U;
        }
        table[i] = value;
    }
    return table;
}

/// Returns the CRC-32 of ISO 3309, which zip archives use.
std::uint32_t crc32(std::span<const std::byte> bytes) {
    static constexpr std::array<std::uint32_t, 256> table = make_crc_table();
    std::uint32_t crc = 0xFFFFFFFFU;
    for (const std::byte byte : bytes) {
        crc = table[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU] ^ (crc >> 8U);
    }
    return ~crc;
}

/// A zip archive whose entries are stored without compression.
class Zip {
public:
    void add(const std::string& name, std::span<const std::byte> content) {
        const std::size_t begin = out_.size();
        const std::size_t end = begin + local_header + extra_header + name.size();
        const std::size_t padding = (alignment - end % alignment) % alignment;
        check_size(end + padding + content.size());
        Bytes common;  // fields that the local header and the directory share
        ByteWriter fields(common);
        fields.put(std::uint16_t{20});    // version of the format that a reader needs: 2.0
        fields.put(std::uint16_t{0});     // flags
        fields.put(std::uint16_t{0});     // stored
        fields.put(std::uint16_t{0});     // time
        fields.put(std::uint16_t{0x21});  // date: 1980-01-01, so that equal weights give equal archives
        fields.put(crc32(content));
        fields.put(static_cast<std::uint32_t>(content.size()));
        fields.put(static_cast<std::uint32_t>(content.size()));
        fields.put(static_cast<std::uint16_t>(name.size()));

        ByteWriter writer(out_);
        writer.put(std::uint32_t{0x04034B50});
        append(out_, common);
        writer.put(static_cast<std::uint16_t>(extra_header + padding));
        append(out_, name);
        writer.put(std::uint16_t{0x4246});  // the id of the extra field that torch.save() fills with padding
        writer.put(static_cast<std::uint16_t>(padding));
        append(out_, std::string(padding, 'Z'));
        append(out_, content);

        ByteWriter directory(directory_);
        directory.put(std::uint32_t{0x02014B50});
        directory.put(std::uint16_t{20});
        append(directory_, common);
        append(directory_, std::string(12, '\0'));  // no extra field, no comment, first disk, no attributes
        directory.put(static_cast<std::uint32_t>(begin));
        append(directory_, name);
        ++entries_;
    }

    Bytes finish() && {
        const std::size_t begin = out_.size();
        check_size(begin + directory_.size());
        append(out_, directory_);
        ByteWriter writer(out_);
        writer.put(std::uint32_t{0x06054B50});
        writer.put(std::uint32_t{0});  // the first disk, twice
        writer.put(entries_);
        writer.put(entries_);
        writer.put(static_cast<std::uint32_t>(directory_.size()));
        writer.put(static_cast<std::uint32_t>(begin));
        writer.put(std::uint16_t{0});  // no comment
        return std::move(out_);
    }

private:
    static constexpr std::size_t local_header = 30;
    static constexpr std::size_t extra_header = 4;

    void check_size(std::size_t bytes) const {
        if (bytes > std::numeric_limits<std::uint32_t>::max() ||
            entries_ == std::numeric_limits<std::uint16_t>::max()) {
            throw ConfigError(
                "the weights take more than 4 GiB, which model.pt cannot hold; accepted: smaller networks");
        }
    }

    Bytes out_;
    Bytes directory_;
    std::uint16_t entries_ = 0;
};

/// Writes pickled values. Each function appends the operation that pushes one value.
class Pickle {
public:
    explicit Pickle(Bytes& out) : out_(out) {}

    void operation(char code) { append(out_, std::string_view(&code, 1)); }
    void global(std::string_view module_and_name) {
        operation('c');
        append(out_, module_and_name);
    }
    void text(std::string_view value) {
        operation('X');
        ByteWriter(out_).put_text(value);
    }
    void number(std::int64_t value) {
        operation('J');
        ByteWriter(out_).put(static_cast<std::int32_t>(value));
    }
    void tuple(std::span<const std::int64_t> values) {
        operation('(');
        for (const std::int64_t value : values) {
            number(value);
        }
        operation('t');
    }

private:
    Bytes& out_;
};

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t axis = shape.size(); axis > 1; --axis) {
        strides[axis - 2] = strides[axis - 1] * shape[axis - 1];
    }
    return strides;
}

/// Pickles torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks).
void put_tensor(Pickle& pickle, const NamedArray& array, std::size_t key) {
    const Tensor tensor(array);
    pickle.global("torch._utils\n_rebuild_tensor_v2\n");
    pickle.operation('(');
    pickle.operation('(');
    pickle.text("storage");
    pickle.global(tensor.is_counter() ? "torch\nLongStorage\n" : "torch\nFloatStorage\n");
    pickle.text(std::to_string(key));
    pickle.text("cpu");
    pickle.number(static_cast<std::int64_t>(tensor.size()));
    pickle.operation('t');
    pickle.operation('Q');  // the storage is in the archive, as data/KEY
    pickle.number(0);
    pickle.tuple(array.shape);
    pickle.tuple(strides_of(array.shape));
    pickle.operation('\x89');  // False
    pickle.global(module_dict);
    pickle.operation(')');
    pickle.operation('R');
    pickle.operation('t');
    pickle.operation('R');
}

Bytes pickled(const NamedArrays& arrays) {
    Bytes out;
    Pickle pickle(out);
    append(out, "\x80\x02");  // protocol 2
    pickle.operation('}');
    pickle.operation('(');
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        pickle.text(arrays[i].name);
        put_tensor(pickle, arrays[i], i);
    }
    pickle.operation('u');
    pickle.operation('.');
    return out;
}

}  // namespace

Bytes torch_archive(const NamedArrays& arrays) {
    const auto bytes_of = [](std::string_view text) { return std::as_bytes(std::span(text)); };
    Zip zip;
    zip.add("model/data.pkl", pickled(arrays));
    zip.add("model/byteorder", bytes_of("little"));
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        zip.add(fmt::format("model/data/{}", i), Tensor(arrays[i]).bytes());
    }
    zip.add("model/version", bytes_of("3\n"));
    return std::move(zip).finish();
}

}  // namespace finch::pytorch
