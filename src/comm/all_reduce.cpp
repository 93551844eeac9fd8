#include "finch/comm/all_reduce.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <cstddef>
#include <exception>
#include <vector>

namespace finch::comm {
namespace {

/// Returns small numbers, so that floats hold the sums over all ranks exactly.
float known_number(int rank, std::size_t place) {
    return static_cast<float>((rank % 8 + 1) * static_cast<int>(place % 7 + 1));
}

void sum_known_numbers(AllReduce& all_reduce, const Group& group, backend::Device& device) {
    constexpr std::size_t count = 1024;
    std::vector<float> numbers(count);
    for (std::size_t place = 0; place < count; ++place) {
        numbers[place] = known_number(group.rank(), place);
    }
    backend::Buffer bucket = device.allocate(count);
    device.upload(numbers, bucket.data());
    all_reduce.start(bucket.span());
    all_reduce.wait();
    all_reduce.synchronize();
    device.download(bucket.data(), numbers);
    for (std::size_t place = 0; place < count; ++place) {
        float expected = 0;
        for (int rank = 0; rank < group.size(); ++rank) {
            expected += known_number(rank, place);
        }
        if (numbers[place] != expected) {
            throw Error(
                fmt::format("rank {} of {} of this worker: a test sum over the ranks gave {} in place of {}, so "
                            "gradients would be wrong; choose another workers.communicator, or leave out the "
                            "node",
                            group.rank(), group.size(), numbers[place], expected));
        }
    }
}

}  // namespace

std::unique_ptr<AllReduce> make_all_reduce(cluster::AllReduceKind kind, const Group& group, backend::Device& device,
                                           double timeout_seconds) {
    switch (kind) {
        case cluster::AllReduceKind::nccl:
            return make_nccl_all_reduce(group, device, timeout_seconds);
        case cluster::AllReduceKind::staged:
            return make_staged_all_reduce(group, device, timeout_seconds);
        case cluster::AllReduceKind::none:
        case cluster::AllReduceKind::automatic:
        case cluster::AllReduceKind::mpi:
            break;
    }
    return make_mpi_all_reduce(group, timeout_seconds);
}

void check_sum(AllReduce& all_reduce, const Group& group, backend::Device& device) {
    if (group.size() == 1) {
        return;
    }
    try {
        sum_known_numbers(all_reduce, group, device);
    } catch (const std::exception&) {
        all_reduce.give_up();
        throw;
    }
}

}  // namespace finch::comm
