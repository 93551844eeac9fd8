#include "finch/comm/all_reduce.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"

#include "comm/world_rank.hpp"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <numeric>
#include <thread>

using namespace finch;
using namespace finch::comm;
using finch::test::world_rank;

namespace {

/// Returns the values of `rank` in bucket `bucket`. Every rank can compute the values of all ranks, and thereby check
/// the sum in double precision.
std::vector<float> values_of(int rank, std::uint32_t bucket, std::size_t size) {
    RandomStream random(7, Purpose::test, static_cast<std::uint64_t>(rank), bucket);
    std::vector<float> values(size);
    for (float& value : values) {
        value = static_cast<float>(random.normal());
    }
    return values;
}

/// Returns the largest difference between `values` and the sum over ranks, relative to the sum of the magnitudes.
double error_of(const std::vector<float>& values, std::uint32_t bucket, int ranks) {
    std::vector<double> sum(values.size());
    std::vector<double> magnitude(values.size(), 1e-30);
    for (int rank = 0; rank < ranks; ++rank) {
        const auto part = values_of(rank, bucket, values.size());
        for (std::size_t at = 0; at < part.size(); ++at) {
            sum[at] += part[at];
            magnitude[at] += std::fabs(part[at]);
        }
    }
    double worst = 0;
    for (std::size_t at = 0; at < values.size(); ++at) {
        worst = std::max(worst, std::fabs(values[at] - sum[at]) / magnitude[at]);
    }
    return worst;
}

/// Returns whether all ranks have the same bytes as rank 0.
bool equal_on_all_ranks(const std::vector<float>& values) {
    std::vector<float> first = values;
    FINCH_MPI(MPI_Bcast(first.data(), static_cast<int>(first.size()), MPI_FLOAT, 0, MPI_COMM_WORLD));
    int equal = values.empty() || std::memcmp(first.data(), values.data(), values.size() * sizeof(float)) == 0 ? 1 : 0;
    FINCH_MPI(MPI_Allreduce(MPI_IN_PLACE, &equal, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    return equal == 1;
}

/// An AllReduce that adds `error` to one value of each bucket.
class WrongAllReduce : public AllReduce {
public:
    WrongAllReduce(AllReduce& right, float error) : right_(right), error_(error) {}
    [[nodiscard]] backend::CaptureAs capture_as() const override { return right_.capture_as(); }
    void start(std::span<float> bucket) override {
        bucket[bucket.size() / 2] += error_;
        right_.start(bucket);
    }
    void progress() override { right_.progress(); }
    void wait() override { right_.wait(); }
    void sum(std::span<double> values) override { right_.sum(values); }
    void synchronize() override { right_.synchronize(); }
    void give_up() noexcept override { is_given_up = true; }

    bool is_given_up = false;

private:
    AllReduce& right_;
    float error_;
};

}  // namespace

TEST_CASE("all-reduce: sums several buckets of odd sizes, with the same bits on all ranks") {
    const Group group(MPI_COMM_WORLD, 0, world_rank());
    const auto all_reduce = make_mpi_all_reduce(group, 30);
    const std::vector<std::size_t> sizes{1, 2, 3, 0, 7, 1001, 65'537, 300'007};
    for (int round = 0; round < 2; ++round) {
        std::vector<std::vector<float>> buckets;
        for (std::uint32_t bucket = 0; bucket < sizes.size(); ++bucket) {
            buckets.push_back(values_of(world_rank(), bucket, sizes[bucket]));
        }

        for (auto& bucket : buckets) {
            all_reduce->start(bucket);
            all_reduce->progress();
        }
        all_reduce->wait();

        for (std::uint32_t bucket = 0; bucket < sizes.size(); ++bucket) {
            CAPTURE(sizes[bucket]);
            CHECK(error_of(buckets[bucket], bucket, group.size()) < 2 * 6e-8);
            CHECK(equal_on_all_ranks(buckets[bucket]));
        }
    }
}

TEST_CASE("all-reduce: the same values give the same bits in every repetition") {
    const Group group(MPI_COMM_WORLD, 0, world_rank());
    const auto all_reduce = make_mpi_all_reduce(group, 30);
    std::vector<float> first = values_of(world_rank(), 5, 20'011);
    all_reduce->start(first);
    all_reduce->wait();
    for (int round = 0; round < 10; ++round) {
        std::vector<float> again = values_of(world_rank(), 5, 20'011);
        std::this_thread::sleep_for(std::chrono::milliseconds(world_rank() == round % 3 ? 5 : 0));

        all_reduce->start(again);
        all_reduce->wait();

        CHECK(again == first);
    }
}

TEST_CASE("all-reduce: a group of one changes no value, and wait() without a start returns") {
    const Group alone(MPI_COMM_WORLD, world_rank(), 0);
    const Group all(MPI_COMM_WORLD, 0, world_rank());
    std::vector<float> values{1, 2, 3};

    const auto of_one = make_mpi_all_reduce(alone, 30);
    of_one->start(values);
    of_one->progress();
    of_one->wait();
    const auto of_all = make_mpi_all_reduce(all, 30);
    of_all->progress();
    of_all->wait();

    CHECK(values == std::vector<float>{1, 2, 3});
}

TEST_CASE("all-reduce: if a rank is missing, wait() throws within the timeout and names the bucket and the timeout") {
    const Group group(MPI_COMM_WORLD, 0, world_rank());
    const auto all_reduce = make_mpi_all_reduce(group, 0.3);
    std::vector<float> first(1000, 1.0F);
    std::vector<float> second(77, 1.0F);
    all_reduce->start(first);
    all_reduce->wait();
    std::fill(first.begin(), first.end(), 1.0F);
    std::string what;
    double seconds = 0;

    if (group.rank() != 2) {
        all_reduce->start(first);
        all_reduce->start(second);
        const double before = steady_seconds();
        try {
            all_reduce->wait();
        } catch (const Error& error) {
            what = error.what();
        }
        seconds = steady_seconds() - before;
        FINCH_MPI(MPI_Send(nullptr, 0, MPI_BYTE, 2, 0, MPI_COMM_WORLD));
    } else {
        // This rank starts its sums only after both other ranks have timed out. Then the test can end.
        for (int others = 0; others < 2; ++others) {
            FINCH_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        all_reduce->start(first);
        all_reduce->start(second);
    }
    for (bool summed = false; !summed;) {
        try {
            all_reduce->wait();
            summed = true;
        } catch (const Error&) {
        }
    }

    if (group.rank() != 2) {
        CHECK(what.find("bucket 1 of 2 (1000 values)") != std::string::npos);
        CHECK(what.find("0.3 s") != std::string::npos);
        CHECK(seconds >= 0.3);
        CHECK(seconds < 5);
    }
    CHECK(first == std::vector<float>(1000, 3.0F));
    CHECK(second == std::vector<float>(77, 3.0F));
}

TEST_CASE("check_sum: accepts the right sum, and refuses on all ranks a sum that one rank makes wrong") {
    const Group group(MPI_COMM_WORLD, 0, world_rank());
    const auto device = backend::make_cpu_device(1);
    const auto right = make_mpi_all_reduce(group, 30.0);
    std::string problem;

    CHECK_NOTHROW(check_sum(*right, group, *device));
    WrongAllReduce wrong(*right, world_rank() == 1 ? 1.0F : 0.0F);
    try {
        check_sum(wrong, group, *device);
    } catch (const Error& error) {
        problem = error.what();
    }

    CHECK(problem.find(fmt::format("rank {} of 3 of this worker: a test sum over the ranks gave ", world_rank())) == 0);
    CHECK(wrong.is_given_up);
}

TEST_CASE("check_sum: sums nothing on a single rank") {
    const Group alone(MPI_COMM_SELF, 0, 0);
    const auto device = backend::make_cpu_device(1);
    const auto right = make_mpi_all_reduce(alone, 30.0);
    WrongAllReduce wrong(*right, 1.0F);

    CHECK_NOTHROW(check_sum(wrong, alone, *device));
}
