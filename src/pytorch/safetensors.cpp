#include "finch/base/format.hpp"
#include "finch/pytorch/state_dict.hpp"

#include "tensor.hpp"

namespace finch::pytorch {

Bytes safetensors(const NamedArrays& arrays) {
    std::string header = R"({"__metadata__":{"format":"pt"})";
    Bytes values;
    for (const bool counters : {true, false}) {  // int64 first, so that every tensor is aligned to its type
        for (const NamedArray& array : arrays) {
            const Tensor tensor(array);
            if (tensor.is_counter() != counters) {
                continue;
            }
            const std::size_t begin = values.size();
            append(values, tensor.bytes());
            header +=
                fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", array.name,
                            tensor.is_counter() ? "I64" : "F32", fmt::join(array.shape, ","), begin, values.size());
        }
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    Bytes file;
    ByteWriter(file).put(static_cast<std::uint64_t>(header.size()));
    append(file, header);
    append(file, values);
    return file;
}

}  // namespace finch::pytorch
