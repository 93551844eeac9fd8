#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

/// The same formulas and files as in tools/fixtures/pytorch_fixtures.py, with bitwise equal results.
namespace finch::test {

enum class Stream : std::uint64_t {
    weight = 1,
    pixel = 2,
    label = 3,
    index = 4,
    sign = 5,
    parameter = 6,
    grad = 7,
    state_a = 8,
    state_b = 9,
};

/// Returns the output of SplitMix64's finaliser.
inline std::uint64_t mix(std::uint64_t x) {
    std::uint64_t z = x + 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
}

inline std::uint64_t word(Stream stream, std::uint64_t state, std::uint64_t tensor, std::uint64_t index) {
    const std::uint64_t key = (static_cast<std::uint64_t>(stream) << 40U) + (state << 16U) + tensor;
    return mix(mix(key) + index);
}

/// Returns a pseudo-random multiple of 2⁻²³ in [−1, 1).
inline float uniform(Stream stream, std::uint64_t state, std::uint64_t tensor, std::uint64_t index) {
    return static_cast<float>(word(stream, state, tensor, index) >> 40U) * 0x1p-23F - 1.0F;
}

/// Returns `count` values of uniform() for tensor 0, multiplied by `scale`.
inline std::vector<float> uniforms(Stream stream, std::uint64_t state, std::size_t count, float scale) {
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) {
        values.push_back(uniform(stream, state, 0, i) * scale);
    }
    return values;
}

/// A reader of a file in tests/nn/fixtures, from its start.
class Fixture {
public:
    explicit Fixture(const std::string& name) {
        const char* source = std::getenv("FINCH_SOURCE_DIR");
        const std::filesystem::path root = source == nullptr ? "." : source;
        const auto path = root / "tests" / "nn" / "fixtures" / name;
        file_.open(path, std::ios::binary);
        if (!file_) {
            throw std::runtime_error("cannot read " + path.string());
        }
    }
    template <class T>
    T next() {
        T value{};
        if (!file_.read(reinterpret_cast<char*>(&value), sizeof(T))) {
            throw std::runtime_error("a fixture ends too early");
        }
        return value;
    }
    std::vector<float> floats(std::size_t count) {
        std::vector<float> values(count);
        for (float& value : values) {
            value = next<float>();
        }
        return values;
    }
    bool line(std::string& text) { return static_cast<bool>(std::getline(file_, text)); }

private:
    std::ifstream file_;
};

}  // namespace finch::test
