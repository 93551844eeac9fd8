// Tests of sums of two ranks by NCCL, captured in a graph: its kernels, connections and capture. A single rank cannot
// test these, because NCCL launches no kernel for in-place sums of one rank. On a GPU both ranks share the first
// device. Each rank sets its own NCCL_HOSTID, so that NCCL treats the ranks as two machines.
#include "finch/backend/cuda.hpp"

#include "cuda/trained.hpp"

#include <cmath>
#include <cstdlib>
#include <span>

using namespace finch;
using namespace finch::test;

namespace {

void live_on_machines_of_their_own() {
    const std::string id = "finch-test-" + std::to_string(comm::rank_of(MPI_COMM_WORLD));
    ::setenv("NCCL_HOSTID", id.c_str(), 1);
    ::setenv("NCCL_NET", "Socket", 1);
    ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
}

}  // namespace

TEST_CASE("captured sums of two ranks: small and large buckets, repeated forty times, exact on both ranks") {
    live_on_machines_of_their_own();
    const comm::Group both = first_ranks(2);
    const auto device = backend::make_cuda_device(0);
    const auto all_reduce = comm::make_nccl_all_reduce(both, *device, 30);
    constexpr std::size_t floats = 300'000;
    const backend::Buffer buffer = device->allocate(floats);
    std::vector<float> mine(floats);
    for (std::size_t i = 0; i < floats; ++i) {
        mine[i] = static_cast<float>(i % 1000) + (both.is_leader() ? 0.5F : 2.0F);
    }
    device->upload(mine, buffer.data());
    const auto step = device->capture(
        [&] {
            all_reduce->start(buffer.span().first(10));
            all_reduce->start(buffer.span().subspan(10));
            all_reduce->wait();
        },
        backend::CaptureAs::graph);

    for (const std::int64_t steps : {1, 2, 38}) {  // as calls; as a graph; as a graph of 32 steps and single steps
        step->run(steps);
        all_reduce->synchronize();
    }

    std::vector<float> summed(floats);
    device->download(buffer.data(), summed);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < floats; ++i) {
        // The first step sums the two ranks' values. Each of the other forty steps doubles the result.
        wrong += summed[i] == std::ldexp(2 * static_cast<float>(i % 1000) + 2.5F, 40) ? 0U : 1U;
    }
    CHECK(wrong == 0);
}

TEST_CASE("a training of two ranks with captured sums: same bits on both ranks, one rank's within rounding") {
    live_on_machines_of_their_own();
    const comm::Group both = first_ranks(2);
    const comm::Group one = alone();
    const auto datasets = bright_rows(91);  // the last batch of an epoch is small
    const auto device = backend::make_cuda_device(0);
    const auto nccl = comm::make_nccl_all_reduce(both, *device, 30);
    const auto none = comm::make_mpi_all_reduce(one, 30);

    for (const train::Recipe& recipe : {calm_recipe(), residual_recipe()}) {
        const std::vector<float> shared = trained_weights(*device, both, *nccl, datasets, recipe);

        CHECK(difference(shared, trained_weights(*device, one, *none, datasets, recipe)) < 1e-4);
        CHECK(same_on_all(both, shared));
    }
}

TEST_CASE("float16: two ranks with captured sums skip the same steps and have the same bits") {
    live_on_machines_of_their_own();
    const comm::Group both = first_ranks(2);
    const auto datasets = bright_rows(71);
    const auto device = backend::make_cuda_device(0, backend::CudaPath::library);
    const auto nccl = comm::make_nccl_all_reduce(both, *device, 30);
    const NamedArrays start =
        with_large_scale(train::Training(*device, both, *nccl, datasets, float16_recipe()).snapshot());

    const Overflowing trained = trained_in_float16(*device, both, *nccl, datasets, start);

    CHECK(trained.scale.skipped > 2);
    CHECK(trained.scale.skipped < 12);
    std::vector<float> mine = tensors(trained.snapshot, "");
    mine.push_back(trained.scale.scale);
    mine.push_back(static_cast<float>(trained.scale.skipped));
    CHECK(same_on_all(both, mine));
}
