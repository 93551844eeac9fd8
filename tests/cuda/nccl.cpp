// Tests of sums by NCCL: in stream order with the device's work, in a graph, and with deadlines.
#include "finch/backend/cuda.hpp"
#include "finch/base/error.hpp"

#include "cuda/trained.hpp"
#include "support/rehearsal/control.hpp"
#include "support/rehearsal/peers.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cuda_runtime.h>
#include <iterator>
#include <span>
#include <string>

using namespace finch;
using namespace finch::test;

namespace {

void start_again() {
    rehearsal::reset();
    rehearsal::set_peers(rehearsal::Peers::well);
}

}  // namespace

TEST_CASE("sums over two ranks are right on both ranks, as calls and as a replayed graph") {
    start_again();
    const comm::Group both = first_ranks(2);
    const auto device = backend::make_cuda_device(0);
    const auto all_reduce = comm::make_nccl_all_reduce(both, *device, 30);
    CHECK(all_reduce->is_graph_capturable());
    const backend::Buffer buffer = device->allocate(100);
    device->upload(std::vector<float>(100, 1), buffer.data());
    const auto step = device->capture(
        [&] {
            all_reduce->start(buffer.span().first(60));
            all_reduce->start(buffer.span().subspan(60));
            all_reduce->wait();
        },
        backend::CaptureAs::graph);

    step->run(1);
    step->run(99);
    all_reduce->synchronize();
    device->synchronize();

    std::vector<float> summed(100);
    device->download(buffer.data(), summed);
    CHECK(summed == std::vector<float>(100, std::ldexp(1.0F, 100)));  // doubled a hundred times
    CHECK(rehearsal::calls("cudaGraphLaunch") >= 4);
}

TEST_CASE("NCCL's sums equal MPI's: exact for integers, else within rounding, with the same bits on all ranks") {
    start_again();
    const comm::Group all = first_ranks(comm::size_of(MPI_COMM_WORLD));
    const auto device = backend::make_cuda_device(0);
    const auto nccl = comm::make_nccl_all_reduce(all, *device, 30);
    const auto mpi = comm::make_mpi_all_reduce(all, 30);
    std::vector<float> expected(999);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto whole = static_cast<float>(i * static_cast<std::size_t>(all.rank() + 1));
        expected[i] = i < 500 ? whole : std::sin(whole);
    }
    const backend::Buffer buffer = device->allocate(expected.size());
    device->upload(expected, buffer.data());

    for (comm::AllReduce* all_reduce : {nccl.get(), mpi.get()}) {
        const std::span<float> values = all_reduce == nccl.get() ? buffer.span() : std::span(expected);
        all_reduce->start(values.first(1));
        all_reduce->start(values.subspan(1, 700));
        all_reduce->start(values.subspan(701));
        all_reduce->wait();
        all_reduce->synchronize();
    }

    std::vector<float> summed(expected.size());
    device->download(buffer.data(), summed);
    CHECK(std::equal(summed.begin(), summed.begin() + 500, expected.begin()));
    CHECK(difference(summed, expected) < 1e-6);
    const std::vector<double> mine(summed.begin(), summed.end());
    const std::vector<double> theirs = all.gather(mine);
    for (int rank = 0; rank < all.size(); ++rank) {
        CHECK(std::equal(mine.begin(), mine.end(), theirs.begin() + rank * std::ssize(mine)));
    }
}

TEST_CASE("a bucket is summed after the work that computes it and before its use, in every order of streams") {
    const comm::Group both = first_ranks(2);
    for (const auto execution : {rehearsal::Execution::late, rehearsal::Execution::others_first}) {
        start_again();
        const auto device = backend::make_cuda_device(0);
        const auto all_reduce = comm::make_nccl_all_reduce(both, *device, 30);
        const backend::Buffer buffer = device->allocate(3);
        auto* stream = static_cast<cudaStream_t>(device->stream());
        const auto step = device->capture(
            [&] {
                for (const std::size_t bucket : {0, 1}) {
                    static_cast<void>(cudaMemsetAsync(buffer.data() + bucket, 0x40, sizeof(float), stream));
                    all_reduce->start(buffer.span().subspan(bucket, 1));
                }
                all_reduce->wait();
                static_cast<void>(cudaMemcpyAsync(buffer.data() + 2, buffer.data() + 1, sizeof(float),
                                                  cudaMemcpyDeviceToDevice, stream));
            },
            backend::CaptureAs::graph);
        rehearsal::set_execution(execution);

        for (const std::int64_t steps : {1, 1, 40}) {
            step->run(steps);
            all_reduce->synchronize();

            std::vector<float> values(3);
            device->download(buffer.data(), values);
            CHECK(values == std::vector<float>(3, 2 * std::bit_cast<float>(0x40404040)));
        }
    }
    start_again();
}

TEST_CASE("a training on two ranks uses a graph; ranks have the same bits and match one rank within rounding") {
    start_again();
    const comm::Group both = first_ranks(2);
    const comm::Group one = alone();
    const auto datasets = bright_rows(90);
    const auto device = backend::make_cuda_device(0);
    const auto nccl = comm::make_nccl_all_reduce(both, *device, 30);
    const auto none = comm::make_mpi_all_reduce(one, 30);

    const std::vector<float> shared = trained_weights(*device, both, *nccl, datasets, calm_recipe());
    CHECK(rehearsal::calls("cudaGraphLaunch") > 20);
    for (const auto execution : {rehearsal::Execution::late, rehearsal::Execution::others_first}) {
        rehearsal::set_execution(execution);
        CHECK(trained_weights(*device, both, *nccl, datasets, calm_recipe()) == shared);
        rehearsal::set_execution(rehearsal::Execution::at_once);
    }
    const std::vector<float> single = trained_weights(*device, one, *none, datasets, calm_recipe());

    CHECK(difference(shared, single) < 1e-4);
    CHECK(same_on_all(both, shared));
}

TEST_CASE("batch_norm and dropout on two ranks, captured: weights and running statistics match one rank") {
    start_again();
    const comm::Group both = first_ranks(2);
    const comm::Group one = alone();
    const auto datasets = bright_rows(71);  // the last batches are short
    const auto device = backend::make_cuda_device(0);
    const auto nccl = comm::make_nccl_all_reduce(both, *device, 30);
    const auto none = comm::make_mpi_all_reduce(one, 30);

    const std::vector<float> shared = trained_weights(*device, both, *nccl, datasets, residual_recipe());
    CHECK(rehearsal::calls("cudaGraphLaunch") > 20);
    for (const auto execution : {rehearsal::Execution::late, rehearsal::Execution::others_first}) {
        rehearsal::set_execution(execution);
        CHECK(trained_weights(*device, both, *nccl, datasets, residual_recipe()) == shared);
        rehearsal::set_execution(rehearsal::Execution::at_once);
    }

    CHECK(difference(shared, trained_weights(*device, one, *none, datasets, residual_recipe())) < 1e-5);
    CHECK(same_on_all(both, shared));
}

TEST_CASE("a communicator of one rank is captured in the step as well") {
    start_again();
    const comm::Group one = alone();
    const auto datasets = bright_rows(90);
    const auto device = backend::make_cuda_device(0);
    const auto none = comm::make_mpi_all_reduce(one, 30);
    const int destroyed = rehearsal::communicators_destroyed();
    {
        const auto nccl = comm::make_nccl_all_reduce(one, *device, 30);
        CHECK(trained_weights(*device, one, *nccl, datasets, calm_recipe()) ==
              trained_weights(*device, one, *none, datasets, calm_recipe()));
    }
    CHECK(rehearsal::communicators_destroyed() == destroyed + 1);
}

TEST_CASE("if a peer does not join the communicator, the error comes within the deadline") {
    start_again();
    const comm::Group both = first_ranks(2);
    const auto device = backend::make_cuda_device(0);
    rehearsal::set_peers(rehearsal::Peers::never_come);
    const int aborted = rehearsal::communicators_aborted();

    CHECK_THROWS_WITH_AS(static_cast<void>(comm::make_nccl_all_reduce(both, *device, 0.5)),
                         doctest::Contains("workers.timeout_seconds"), Error);

    CHECK(rehearsal::communicators_aborted() == aborted + 1);
    start_again();
}

TEST_CASE("a hanging sum or an NCCL error ends within the deadline; the communicator cannot be used any more") {
    const comm::Group both = first_ranks(2);
    for (const auto peers : {rehearsal::Peers::get_stuck, rehearsal::Peers::report_error}) {
        start_again();
        rehearsal::forgive_waiting();
        const auto device = backend::make_cuda_device(0);
        const backend::Buffer buffer = device->allocate(10);
        auto all_reduce = comm::make_nccl_all_reduce(both, *device, 0.5);
        rehearsal::set_peers(peers);
        const int aborted = rehearsal::communicators_aborted();

        all_reduce->start(buffer.span());
        all_reduce->wait();
        CHECK_THROWS_AS(all_reduce->synchronize(), Error);

        CHECK_THROWS_WITH_AS(all_reduce->synchronize(), doctest::Contains("given up"), Error);
        CHECK_THROWS_WITH_AS(all_reduce->start(buffer.span()), doctest::Contains("given up"), Error);
        all_reduce.reset();
        CHECK(rehearsal::communicators_aborted() == aborted + 1);
    }
    start_again();
}

TEST_CASE("a failure ends within the deadline, although ncclCommAbort waits until graphs with sums are destroyed") {
    start_again();
    rehearsal::forgive_waiting();
    const comm::Group both = first_ranks(2);
    const auto device = backend::make_cuda_device(0);
    const backend::Buffer buffer = device->allocate(10);
    auto all_reduce = comm::make_nccl_all_reduce(both, *device, 0.5);
    const auto sum = [&] {
        all_reduce->start(buffer.span());
        all_reduce->wait();
    };
    auto step = device->capture(sum, backend::CaptureAs::graph);
    step->run(3);
    all_reduce->synchronize();
    const int aborted = rehearsal::communicators_aborted();
    rehearsal::set_peers(rehearsal::Peers::get_stuck);

    sum();
    CHECK_THROWS_AS(all_reduce->synchronize(), Error);

    CHECK(rehearsal::communicators_aborted() == aborted);  // the graph still exists
    step.reset();
    all_reduce.reset();
    CHECK(rehearsal::communicators_aborted() == aborted + 1);
    start_again();
}

TEST_CASE("a training waits only with deadlines if its peers hang in the first step") {
    start_again();
    const comm::Group both = first_ranks(2);
    const auto datasets = bright_rows(90);
    const auto device = backend::make_cuda_device(0);
    const auto nccl = comm::make_nccl_all_reduce(both, *device, 0.5);
    auto training = std::make_unique<train::Training>(*device, both, *nccl, datasets, calm_recipe());
    rehearsal::set_peers(rehearsal::Peers::get_stuck);

    // The stand-in ends the program if a call waits without a deadline.
    CHECK_THROWS_WITH_AS(
        for (int i = 0; i < 3; ++i) { training->advance(5); }, doctest::Contains("workers.timeout_seconds"), Error);

    rehearsal::forgive_waiting();
    training.reset();
    start_again();
}

TEST_CASE("a communicator after give_up(), or during stack unwinding, is aborted and waits for no peer") {
    start_again();
    const comm::Group both = first_ranks(2);
    const auto device = backend::make_cuda_device(0);
    const int aborted = rehearsal::communicators_aborted();
    const int destroyed = rehearsal::communicators_destroyed();

    {
        const auto all_reduce = comm::make_nccl_all_reduce(both, *device, 30);
        all_reduce->give_up();
        CHECK_THROWS_WITH_AS(all_reduce->synchronize(), doctest::Contains("given up"), Error);
    }
    CHECK(rehearsal::communicators_aborted() == aborted + 1);
    try {
        const auto all_reduce = comm::make_nccl_all_reduce(both, *device, 30);
        throw Error("something else");
    } catch (const Error&) {
        CHECK(rehearsal::communicators_aborted() == aborted + 2);
    }
    CHECK(rehearsal::communicators_destroyed() == destroyed);
}

TEST_CASE("NVLink SHARP, which sums in varying order, is disabled unless the user enables it") {
    start_again();
    const comm::Group both = first_ranks(2);
    const auto device = backend::make_cuda_device(0);
    const auto asked_for = [&] {
        static_cast<void>(comm::make_nccl_all_reduce(both, *device, 30));
        const std::string nvls = rehearsal::nvls_asked_for();
        ::unsetenv("NCCL_NVLS_ENABLE");
        ::unsetenv("NCCL_ALGO");
        return nvls;
    };
    ::unsetenv("NCCL_NVLS_ENABLE");
    ::unsetenv("NCCL_ALGO");

    CHECK(asked_for() == "0");
    ::setenv("NCCL_NVLS_ENABLE", "1", 1);
    CHECK(asked_for() == "1");
    ::setenv("NCCL_ALGO", "NVLS", 1);
    CHECK(asked_for().empty());
}
