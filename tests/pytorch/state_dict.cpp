#include "finch/pytorch/state_dict.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace finch;

namespace {

const NamedArrays arrays{{"0.weight", {1, 2}, std::vector<float>{1, -2}},
                         {"1.num_batches_tracked", {}, std::vector<std::int64_t>{7}},
                         {"1.bias", {1}, std::vector<float>{0.5}}};

std::string letters(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
T number_at(const std::string& bytes, std::size_t at) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

}  // namespace

TEST_CASE("safetensors: the size of the header, the header in JSON, and the values, int64 first") {
    const std::string file = letters(pytorch::safetensors(arrays));

    std::string header =
        R"({"__metadata__":{"format":"pt"},"1.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
        R"("0.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]},)"
        R"("1.bias":{"dtype":"F32","shape":[1],"data_offsets":[16,20]}})";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    CHECK(number_at<std::uint64_t>(file, 0) == header.size());
    CHECK(file.substr(8, header.size()) == header);
    const std::size_t values = 8 + header.size();
    CHECK(file.size() == values + 20);
    CHECK(number_at<std::int64_t>(file, values) == 7);
    CHECK(number_at<float>(file, values + 8) == 1);
    CHECK(number_at<float>(file, values + 12) == -2);
    CHECK(number_at<float>(file, values + 16) == 0.5F);
}

// tests/end_to_end/exported_network.py reads archives with Python's zipfile and pickle, and with PyTorch.
TEST_CASE("torch_archive: entries with the CRC-32 of their values, which are aligned to 64 bytes") {
    const std::string file = letters(pytorch::torch_archive(arrays));

    std::vector<std::string> names;
    std::size_t at = 0;
    while (number_at<std::uint32_t>(file, at) == 0x04034B50) {
        const auto size = number_at<std::uint32_t>(file, at + 18);
        const auto name_size = number_at<std::uint16_t>(file, at + 26);
        const std::size_t content = at + 30 + name_size + number_at<std::uint16_t>(file, at + 28);
        names.push_back(file.substr(at + 30, name_size));
        CHECK(content % 64 == 0);
        if (names.back() == "model/version") {
            CHECK(file.substr(content, size) == "3\n");
            CHECK(number_at<std::uint32_t>(file, at + 14) == 0x55679ED1);
        }
        if (names.back() == "model/data/0") {
            CHECK(size == 8);
            CHECK(number_at<float>(file, content + 4) == -2);
        }
        at = content + size;
    }

    CHECK(names == std::vector<std::string>{"model/data.pkl", "model/byteorder", "model/data/0", "model/data/1",
                                            "model/data/2", "model/version"});
}
