#include "finch/comm/mpi.hpp"

#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/comm/phase.hpp"

#include "deadline.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <thread>
#include <utility>

namespace finch::comm {
namespace {

constexpr int bytes_tag = 31415;
constexpr const char* yield_variable = "OMPI_MCA_mpi_yield_when_idle";

/// Makes a waiting rank yield its core: a rank that spins can block the rank that it waits for.
void give_cores_away_when_idle() {
    const cluster::Environment environment = cluster::Environment::of_this_process();
    if (!environment.text(yield_variable) && cluster::node_is_crowded(environment, cluster::usable_cpus())) {
        ::setenv(yield_variable, "1", 1);
    }
}

}  // namespace

bool yields_when_idle() {
    static const bool yields = [] {
        const auto set = cluster::Environment::of_this_process().text(yield_variable);
        return set && *set != "0" && *set != "false";
    }();
    return yields;
}

void check(int code, const char* call, std::source_location where) {
    if (code == MPI_SUCCESS) {
        return;
    }
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) {
        length = 0;
    }
    throw ApiError(fmt::format("{} failed: {} ({}:{})", call,
                               std::string_view(text.data(), static_cast<std::size_t>(length)), where.file_name(),
                               where.line()));
}

void CommunicatorTraits::destroy(type communicator) noexcept {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0 || std::uncaught_exceptions() > 0) {
        return;
    }
    if (MPI_Comm_free(&communicator) != MPI_SUCCESS) {
        spdlog::warn("MPI_Comm_free failed");
    }
}

Communicator own(MPI_Comm communicator) {
    Communicator owner(communicator);
    if (owner) {
        FINCH_MPI(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN));
    }
    return owner;
}

Communicator duplicate(MPI_Comm communicator) {
    MPI_Comm copy = MPI_COMM_NULL;
    FINCH_MPI(MPI_Comm_dup(communicator, &copy));
    return own(copy);
}

Communicator split(MPI_Comm communicator, int color) {
    MPI_Comm part = MPI_COMM_NULL;
    FINCH_MPI(MPI_Comm_split(communicator, color, rank_of(communicator), &part));
    return own(part);
}

Session::Session(int& argc, char**& argv) : exceptions_(std::uncaught_exceptions()) {
    give_cores_away_when_idle();
    int provided = 0;
    FINCH_MPI(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));
    FINCH_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (provided < MPI_THREAD_FUNNELED) {
        throw Error("this MPI library does not support MPI_THREAD_FUNNELED");
    }
    rank_ = rank_of(MPI_COMM_WORLD);
    size_ = size_of(MPI_COMM_WORLD);
}

Session::~Session() {
    if (std::uncaught_exceptions() > exceptions_) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
}

int rank_of(MPI_Comm communicator) {
    int rank = 0;
    FINCH_MPI(MPI_Comm_rank(communicator, &rank));
    return rank;
}

int size_of(MPI_Comm communicator) {
    int size = 0;
    FINCH_MPI(MPI_Comm_size(communicator, &size));
    return size;
}

void broadcast_bytes(MPI_Comm communicator, int root, std::span<std::byte> bytes, std::size_t most) {
    for (std::size_t at = 0; at < bytes.size(); at += most) {
        const auto count = static_cast<int>(std::min(most, bytes.size() - at));
        MPI_Request request = MPI_REQUEST_NULL;
        FINCH_MPI(MPI_Ibcast(bytes.data() + at, count, MPI_BYTE, root, communicator, &request));
        wait_for(request);
    }
}

std::vector<std::string> gather_all(MPI_Comm communicator, const std::string& mine, std::size_t most) {
    const auto ranks = static_cast<std::size_t>(size_of(communicator));
    const std::uint64_t length = mine.size();
    std::vector<std::uint64_t> lengths(ranks);
    MPI_Request request = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Iallgather(&length, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, communicator, &request));
    wait_for(request);
    std::vector<std::string> texts;
    if (std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}) > most) {
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            std::string& text = texts.emplace_back(mine);
            text.resize(lengths[rank]);
            broadcast_bytes(communicator, static_cast<int>(rank), std::as_writable_bytes(std::span(text)), most);
        }
        return texts;
    }
    const std::vector<int> counts(lengths.begin(), lengths.end());
    std::vector<int> starts(ranks);
    std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
    std::string all(static_cast<std::size_t>(starts.back() + counts.back()), '\0');
    FINCH_MPI(MPI_Iallgatherv(mine.data(), static_cast<int>(length), MPI_CHAR, all.data(), counts.data(), starts.data(),
                              MPI_CHAR, communicator, &request));
    wait_for(request);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        texts.push_back(all.substr(static_cast<std::size_t>(starts[rank]), static_cast<std::size_t>(counts[rank])));
    }
    return texts;
}

void wait_for_all(MPI_Comm communicator, double seconds) {
    MPI_Request request = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Ibarrier(communicator, &request));
    Deadline deadline(seconds);
    for (int done = 0; done == 0 && !deadline.is_over();) {
        FINCH_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void broadcast(MPI_Comm communicator, Bytes& bytes) {
    std::uint64_t size = bytes.size();
    broadcast_bytes(communicator, 0, std::as_writable_bytes(std::span(&size, 1)));
    bytes.resize(size);
    broadcast_bytes(communicator, 0, bytes);
}

void send_bytes(MPI_Comm communicator, int to, std::span<const std::byte> bytes) {
    if (bytes.size() > most_message_bytes) {
        throw Error(fmt::format("a message of {} bytes is too long", bytes.size()));
    }
    MPI_Request request = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, bytes_tag, communicator, &request));
    wait_for(request);
}

Bytes receive_bytes(MPI_Comm communicator, int from) {
    MPI_Status status;
    int size = 0;
    wait_until([&] {
        int there = 0;
        FINCH_MPI(MPI_Iprobe(from, bytes_tag, communicator, &there, &status));
        return there != 0;
    });
    FINCH_MPI(MPI_Get_count(&status, MPI_BYTE, &size));
    Bytes bytes(static_cast<std::size_t>(size));
    FINCH_MPI(MPI_Recv(bytes.data(), size, MPI_BYTE, from, bytes_tag, communicator, MPI_STATUS_IGNORE));
    return bytes;
}

std::string broadcast(MPI_Comm communicator, const std::string& text) {
    std::uint64_t length = text.size();
    broadcast_bytes(communicator, 0, std::as_writable_bytes(std::span(&length, 1)));
    std::string received = text;
    received.resize(length);
    broadcast_bytes(communicator, 0, std::as_writable_bytes(std::span(received)));
    return received;
}

}  // namespace finch::comm
