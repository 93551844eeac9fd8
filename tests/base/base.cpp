#include "finch/base/bytes.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/named_array.hpp"
#include "finch/base/random.hpp"
#include "finch/base/words.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <vector>

namespace finch {

TEST_CASE("philox gives the known answers of Random123 (kat_vectors, philox4x32-10)") {
    using Counter = PhiloxCounter;

    CHECK(philox({{0, 0, 0, 0}}, {{0, 0}}) == Counter{{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
    CHECK(philox({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, {{0xffffffff, 0xffffffff}}) ==
          Counter{{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
    CHECK(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}}) ==
          Counter{{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST_CASE("random streams with equal arguments are equal, and others differ") {
    const auto first = [](RandomStream stream) { return stream.uniform(); };

    CHECK(first({1, Purpose::breeding, 7}) == first({1, Purpose::breeding, 7}));
    CHECK(first({1, Purpose::breeding, 7}) != first({2, Purpose::breeding, 7}));
    CHECK(first({1, Purpose::breeding, 7}) != first({1, Purpose::exchange, 7}));
    CHECK(first({1, Purpose::breeding, 7}) != first({1, Purpose::breeding, 8}));
    CHECK(first({1, Purpose::breeding, 7, 0}) != first({1, Purpose::breeding, 7, 1}));
}

TEST_CASE("uniform and normal numbers have the correct mean and variance") {
    RandomStream random(3, Purpose::test);
    const int count = 200000;
    double sum = 0;
    double normal_sum = 0;
    double normal_squares = 0;

    for (int i = 0; i < count; ++i) {
        const double u = random.uniform();
        REQUIRE((u >= 0 && u < 1));
        sum += u;
        const double n = random.normal();
        normal_sum += n;
        normal_squares += n * n;
    }

    CHECK(sum / count == doctest::Approx(0.5).epsilon(0.01));
    CHECK(std::abs(normal_sum / count) < 0.01);
    CHECK(normal_squares / count == doctest::Approx(1.0).epsilon(0.02));
}

TEST_CASE("below(n) is uniform and less than n") {
    RandomStream random(4, Purpose::test);
    std::vector<int> seen(7);

    for (int i = 0; i < 70000; ++i) {
        ++seen.at(random.below(7));
    }

    for (const int n : seen) {
        CHECK(n == doctest::Approx(10000).epsilon(0.05));
    }
}

TEST_CASE("a permutation contains each number once") {
    RandomStream random(5, Purpose::test);
    std::vector<int> seen(1000);

    for (const std::uint32_t i : random.permutation(1000)) {
        ++seen.at(i);
    }

    CHECK(seen == std::vector<int>(1000, 1));
}

TEST_CASE("CRC-32C gives the check values of RFC 3720") {
    const auto of = [](const std::vector<unsigned char>& bytes) { return crc32c(std::as_bytes(std::span(bytes))); };
    const std::string digits = "123456789";
    std::vector<unsigned char> ascending(32);
    for (std::size_t i = 0; i < 32; ++i) {
        ascending[i] = static_cast<unsigned char>(i);
    }

    CHECK(of({digits.begin(), digits.end()}) == 0xE3069283);
    CHECK(of(std::vector<unsigned char>(32, 0)) == 0x8A9136AA);
    CHECK(of(std::vector<unsigned char>(32, 0xFF)) == 0x62A8AB43);
    CHECK(of(ascending) == 0x46DD794E);
    const auto bytes = std::as_bytes(std::span(ascending));
    CHECK(crc32c(bytes.subspan(13), crc32c(bytes.first(13))) == 0x46DD794E);
}

TEST_CASE("the CRC-32C instruction gives the results of the tables for all lengths and alignments") {
    RandomStream random(1, Purpose::test);
    std::vector<std::byte> bytes(300);
    for (std::byte& one : bytes) {
        one = static_cast<std::byte>(random.below(256));
    }
    CHECK(detail::crc32c_by_tables(std::as_bytes(std::span("123456789", 9))) == 0xE3069283);
    for (std::size_t first = 0; first < 9; ++first) {
        for (std::size_t size = 0; size + first <= bytes.size(); ++size) {
            const auto some = std::span(bytes).subspan(first, size);
            REQUIRE(crc32c(some, 77) == detail::crc32c_by_tables(some, 77));
        }
    }
}

TEST_CASE("bytes: written values are read back, and a read after the end throws FileError") {
    Bytes bytes;
    ByteWriter writer(bytes);
    writer.put(42.5);
    writer.put_text("finch");
    const std::vector<std::int64_t> numbers{1, -2, 3};
    writer.put_all(std::span<const std::int64_t>(numbers));
    ByteReader reader(bytes);

    CHECK(reader.get<double>() == 42.5);
    CHECK(reader.get_text() == "finch");
    CHECK(reader.get_all<std::int64_t>() == numbers);
    CHECK(reader.left() == 0);
    CHECK_THROWS_AS(reader.get<char>(), FileError);
}

TEST_CASE("edit distance counts inserted, removed, replaced and swapped letters") {
    CHECK(edit_distance("finch", "finch") == 0);
    CHECK(edit_distance("epochs", "epoch") == 1);
    CHECK(edit_distance("lerning", "learning") == 1);
    CHECK(edit_distance("ab", "ba") == 1);
    CHECK(edit_distance("", "abc") == 3);
}

TEST_CASE("nearest_word finds the most similar word, and nothing if no word is similar") {
    const std::vector<std::string> known{"epochs", "batch_size", "optimizer"};

    CHECK(nearest_word("epoch", known) == "epochs");
    CHECK(nearest_word("batchsize", known) == "batch_size");
    CHECK_FALSE(nearest_word("zebra_crossing", known).has_value());
}

TEST_CASE("quoted_for_shell escapes quotes, $ and backslashes") {
    CHECK(quoted_for_shell("a'b $(c) \\") == "'a'\\''b $(c) \\'");
}

TEST_CASE("shell_argument quotes only what a shell would change") {
    CHECK(shell_argument("runs/a-2/config.yaml") == "runs/a-2/config.yaml");
    CHECK(shell_argument("a=[1, 2]") == "'a=[1, 2]'");
    CHECK(shell_argument("~/runs") == "'~/runs'");
    CHECK(shell_argument("") == "''");
}

TEST_CASE("counted uses the singular for one, and counted_of for a total of one") {
    CHECK(counted(0, "rank") == "0 ranks");
    CHECK(counted(1, "rank") == "1 rank");
    CHECK(counted(2, "rank") == "2 ranks");
    CHECK(counted_of(1, 200, "evaluation") == "1 of 200 evaluations");
    CHECK(counted_of(0, 1, "evaluation") == "0 of 1 evaluation");
    CHECK(counted_of(1, -1, "evaluation") == "1 evaluation");
    CHECK(counted_of(6, 5, "evaluation") == "6 evaluations (budget 5)");
}

TEST_CASE("duration_text uses the units s, min and h") {
    CHECK(duration_text(0.31) == "0.3 s");
    CHECK(duration_text(42) == "42 s");
    CHECK(duration_text(185) == "3 min 05 s");
    CHECK(duration_text(7860) == "2 h 11 min");
}

}  // namespace finch
