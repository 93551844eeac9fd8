// Replaces NCCL in tests. Ranks on one machine communicate by shared memory, which is named by the unique id. Sums are
// computed in rank order. As in NCCL, calls on a non-blocking communicator return ncclInProgress. The end of a
// communicator waits for all graphs that contain its all-reduces.
#include "support/rehearsal/control.hpp"
#include "support/rehearsal/kernel_entry.hpp"
#include "support/rehearsal/peers.hpp"

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <nccl.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace finch::rehearsal {
namespace {

constexpr int most_ranks = 8;
constexpr std::size_t most_bytes = std::size_t{4} << 20;

/// Shared memory of the ranks of a communicator, initially zero.
struct Meeting {
    std::atomic<int> arrived;
    std::atomic<long> posted[most_ranks];  ///< by rank: all-reduces with written input
    std::atomic<long> taken[most_ranks];   ///< by rank: all-reduces with read result
    alignas(double) std::byte values[most_ranks][most_bytes];
};

Peers peers = Peers::well;
std::atomic<int> aborted = 0;  // atomic, because any thread may abort
std::atomic<int> destroyed = 0;
std::string nvls;

}  // namespace

void set_peers(Peers of) {
    peers = of;
}
int communicators_aborted() {
    return aborted;
}
int communicators_destroyed() {
    return destroyed;
}
std::string nvls_asked_for() {
    return nvls;
}

}  // namespace finch::rehearsal

using namespace finch::rehearsal;

struct ncclComm {
    Meeting* meeting = nullptr;
    std::string name;
    int rank = 0;
    int ranks = 1;
    int looks = 0;  ///< remaining queries until the pending call is complete
    long sums = 0;
    std::shared_ptr<int> work = std::make_shared<int>();  ///< shared with every all-reduce in a stream or graph

    template <class Counter>
    void wait_for(const Counter (&counters)[most_ranks], long count) const {
        for (int other = 0; other < ranks; ++other) {
            while (counters[other].load() < count) {
                sched_yield();
            }
        }
    }

    template <class Number>
    void all_reduce(Number* data, std::size_t count) {
        ++sums;
        wait_for(meeting->taken, sums - 1);  // waits until no rank reads the values of the previous all-reduce
        std::memcpy(meeting->values[rank], data, count * sizeof *data);
        meeting->posted[rank] = sums;
        wait_for(meeting->posted, sums);
        for (std::size_t i = 0; i < count; ++i) {
            Number sum = 0;
            for (int other = 0; other < ranks; ++other) {
                sum += reinterpret_cast<const Number*>(meeting->values[other])[i];
            }
            data[i] = sum;
        }
        meeting->taken[rank] = sums;
    }
};

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
    return result == ncclRemoteError ? "remote process exited or there was a network error" : "no error";
}
const char* ncclGetLastError(ncclComm_t) {
    return "the stand-in says so";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    static int made = 0;
    std::memset(id, 0, sizeof *id);
    std::snprintf(id->internal, sizeof id->internal, "/finch-rehearsal-%d-%d", static_cast<int>(getpid()), ++made);
    return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
    if (config->blocking != 0 || ranks > most_ranks) {
        return ncclInvalidArgument;  // Finch needs non-blocking communicators for its deadlines
    }
    const char* asked = std::getenv("NCCL_NVLS_ENABLE");
    nvls = asked == nullptr ? "" : asked;
    auto* made = new ncclComm;
    made->name = id.internal;
    made->rank = rank;
    made->ranks = ranks;
    made->looks = 3;
    const int file = shm_open(id.internal, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(Meeting)) != 0) {
        return ncclSystemError;
    }
    made->meeting = static_cast<Meeting*>(mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
    ++made->meeting->arrived;
    *communicator = made;
    return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
    const bool all_here = communicator->meeting->arrived.load() >= communicator->ranks && peers != Peers::never_come;
    if (communicator->looks > 0 && all_here) {
        --communicator->looks;
    }
    *state = communicator->looks > 0 || !all_here                     ? ncclInProgress
             : peers == Peers::report_error && communicator->sums > 0 ? ncclRemoteError
                                                                      : ncclSuccess;
    return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
    const std::size_t bytes = count * (type == ncclDouble ? sizeof(double) : sizeof(float));
    if (from != to || (type != ncclFloat && type != ncclDouble) || operation != ncclSum || bytes > most_bytes ||
        !is_device_memory(to, bytes)) {
        return ncclInvalidArgument;
    }
    if (peers == Peers::get_stuck || peers == Peers::report_error) {
        ++communicator->sums;
        block(stream);
        return ncclSuccess;
    }
    submit(stream, [communicator, to, count, type, held = communicator->work] {
        if (type == ncclDouble) {
            communicator->all_reduce(static_cast<double*>(to), count);
        } else {
            communicator->all_reduce(static_cast<float*>(to), count);
        }
    });
    communicator->looks = 1;
    return ncclInProgress;
}
ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
    communicator->looks = 2;
    return ncclInProgress;
}
static ncclResult_t take_leave(ncclComm_t communicator) {
    while (communicator->work.use_count() > 1) {
        sched_yield();
    }
    shm_unlink(communicator->name.c_str());
    munmap(communicator->meeting, sizeof(Meeting));
    delete communicator;
    return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
    const ncclResult_t result = take_leave(communicator);
    ++destroyed;
    return result;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
    const ncclResult_t result = take_leave(communicator);
    ++aborted;
    return result;
}

}  // extern "C"
