// Tests of ranks that share a device: sums through host memory.
#include "finch/backend/cuda.hpp"
#include "finch/base/error.hpp"

#include "cuda/trained.hpp"
#include "support/rehearsal/control.hpp"

#include <utility>

using namespace finch;
using namespace finch::test;

TEST_CASE("staged sums are exact for integers on all ranks, in every order in which the ranks' copies arrive") {
    using enum rehearsal::Execution;
    const comm::Group all = first_ranks(comm::size_of(MPI_COMM_WORLD));
    const auto factor = static_cast<std::size_t>(all.size() * (all.size() + 1) / 2);
    // Execution of rank 0 and of the other ranks.
    for (const auto& [first, others] : {std::pair{at_once, at_once}, {late, late}, {at_once, late}, {late, at_once}}) {
        rehearsal::reset();
        const auto device = backend::make_cuda_device(0);
        const auto all_reduce = comm::make_staged_all_reduce(all, *device, 30);
        CHECK(!all_reduce->is_graph_capturable());
        const backend::Buffer buffer = device->allocate(1000);
        std::vector<float> mine(1000);
        for (std::size_t i = 0; i < mine.size(); ++i) {
            mine[i] = static_cast<float>(i * static_cast<std::size_t>(all.rank() + 1));
        }
        rehearsal::set_execution(all.rank() == 0 ? first : others);
        for (int step = 0; step < 5; ++step) {
            device->upload(mine, buffer.data());
            all_reduce->start(buffer.span().first(700));
            all_reduce->progress();
            all_reduce->start(buffer.span().subspan(700));
            all_reduce->wait();

            std::vector<float> summed(1000);
            device->download(buffer.data(), summed);
            bool right = true;
            for (std::size_t i = 0; i < summed.size(); ++i) {
                right = right && summed[i] == static_cast<float>(factor * i);
            }
            CHECK(right);
        }
        rehearsal::reset();
    }
}

TEST_CASE("staged: a missing peer is reported within the deadline, and memory that MPI uses is not freed") {
    const comm::Group both = first_ranks(2);
    const bool late = both.rank() == 1;
    for (const bool statistics : {false, true}) {
        CAPTURE(statistics);
        rehearsal::reset();
        const auto device = backend::make_cuda_device(0);
        const backend::Buffer buffer = device->allocate(1000);
        const std::size_t before = rehearsal::pinned_bytes_in_use();
        {
            const auto all_reduce = comm::make_staged_all_reduce(both, *device, late ? 30 : 0.3);
            const auto sum = [&] {
                if (statistics) {
                    all_reduce->sum({reinterpret_cast<double*>(buffer.data()), 500});
                } else {
                    all_reduce->start(buffer.span());
                    all_reduce->wait();
                }
            };
            if (late) {  // waits until the other rank has given up
                FINCH_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, both.get(), MPI_STATUS_IGNORE));
            }
            if (late || both.size() == 1) {
                CHECK_NOTHROW(sum());
            } else {
                CHECK_THROWS_WITH_AS(sum(), doctest::Contains("workers.timeout_seconds"), Error);
                FINCH_MPI(MPI_Send(nullptr, 0, MPI_BYTE, 1, 0, both.get()));
            }
        }
        CHECK(rehearsal::pinned_bytes_in_use() == before + (late || both.size() == 1 ? 0 : 1000 * sizeof(float)));
        static_cast<void>(both.maximum(0));
    }
}

TEST_CASE("staged: a training on two ranks has the same bits on both, and one rank's result within rounding") {
    rehearsal::reset();
    const comm::Group both = first_ranks(2);
    const comm::Group one = alone();
    const auto datasets = bright_rows(90);
    const auto device = backend::make_cuda_device(0);
    const auto staged = comm::make_staged_all_reduce(both, *device, 30);
    const auto none = comm::make_mpi_all_reduce(one, 30);

    const std::vector<float> shared = trained_weights(*device, both, *staged, datasets, calm_recipe());
    const std::vector<float> single = trained_weights(*device, one, *none, datasets, calm_recipe());

    CHECK(difference(shared, single) < 1e-4);
    CHECK(same_on_all(both, shared));
}

TEST_CASE("staged: sums of doubles and buckets are summed in the order of the calls") {
    using enum rehearsal::Execution;
    const comm::Group all = first_ranks(comm::size_of(MPI_COMM_WORLD));
    const auto factor = static_cast<double>(all.size() * (all.size() + 1)) / 2;
    for (const auto& [first, others] : {std::pair{at_once, at_once}, {late, late}, {at_once, late}, {late, at_once}}) {
        rehearsal::reset();
        const auto device = backend::make_cuda_device(0);
        const auto all_reduce = comm::make_staged_all_reduce(all, *device, 30);
        const backend::Buffer bucket = device->allocate(1000);
        const backend::Buffer statistics = device->allocate(14);
        const std::span<double> values(reinterpret_cast<double*>(statistics.data()), 7);
        rehearsal::set_execution(all.rank() == 0 ? first : others);
        for (int step = 0; step < 3; ++step) {
            const std::vector<double> mine(7, 0.1 * (all.rank() + 1));
            device->upload(std::vector<float>(1000, static_cast<float>(all.rank() + 1)), bucket.data());
            device->upload({reinterpret_cast<const float*>(mine.data()), 14}, statistics.data());

            all_reduce->sum(values);
            all_reduce->start(bucket.span());
            all_reduce->sum(values.first(3));
            all_reduce->wait();

            std::vector<double> sums(7);
            std::vector<float> summed(1000);
            device->download(statistics.data(), {reinterpret_cast<float*>(sums.data()), 14});
            device->download(bucket.data(), summed);
            CHECK(sums[0] == doctest::Approx(0.1 * factor * all.size()).epsilon(1e-15));
            CHECK(sums[6] == doctest::Approx(0.1 * factor).epsilon(1e-15));
            CHECK(summed == std::vector<float>(1000, static_cast<float>(factor)));
        }
        rehearsal::reset();
    }
}

TEST_CASE("staged: batch_norm and dropout on 2 and 3 ranks give one rank's weights and running statistics") {
    rehearsal::reset();
    const comm::Group one = alone();
    const auto datasets = bright_rows(71);  // the last batch of an epoch is small
    const auto device = backend::make_cuda_device(0);
    const auto none = comm::make_mpi_all_reduce(one, 30);
    const std::vector<float> single = trained_weights(*device, one, *none, datasets, residual_recipe());
    for (const int ranks : {2, 3}) {
        CAPTURE(ranks);
        const comm::Group group = first_ranks(ranks);
        const auto staged = comm::make_staged_all_reduce(group, *device, 30);

        const std::vector<float> shared = trained_weights(*device, group, *staged, datasets, residual_recipe());

        CHECK(difference(shared, single) < 1e-5);
        CHECK(same_on_all(group, shared));
    }
}

TEST_CASE("staged: activations in bfloat16 on 2 ranks give about one rank's weights, the same on both") {
    rehearsal::reset();
    const comm::Group one = alone();
    const auto datasets = bright_rows(27);
    const auto device = backend::make_cuda_device(0);
    const auto none = comm::make_mpi_all_reduce(one, 30);
    const std::vector<float> single = trained_weights(*device, one, *none, datasets, bfloat16_recipe());
    const comm::Group group = first_ranks(2);
    const auto staged = comm::make_staged_all_reduce(group, *device, 30);

    const std::vector<float> shared = trained_weights(*device, group, *staged, datasets, bfloat16_recipe());

    CHECK(difference(shared, single) < 0.01);  // the ranks' partial sums round differently
    CHECK(same_on_all(group, shared));
}
