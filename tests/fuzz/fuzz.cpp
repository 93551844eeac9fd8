// fuzz_input [TARGET] [CASES] [FIRST]: mutates good inputs and reads them. Case n of a target is always the same bytes.
//
// Rules: the target must accept every input or reject it with a finch::Error. It must stay within the CPU time below.
// It may allocate at most four times the input's size + 64 MB with operator new. If a case breaks a rule, the program
// prints its number and exits with 1.
//
// Errors inside libhdf5 are not errors of Finch, so these cases are only counted (see docs/files.md). Therefore the
// HDF5 targets run in child processes.
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"

#include "support/temporary_folder.hpp"
#include "targets.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <execinfo.h>
#include <malloc.h>
#include <new>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

std::size_t allocated = 0;  // bytes that operator new has allocated and that are not yet freed
std::size_t most_allocated = 0;

}  // namespace

void* operator new(std::size_t size) {
    void* const memory = std::malloc(size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    allocated += malloc_usable_size(memory);
    most_allocated = std::max(most_allocated, allocated);
    return memory;
}
void operator delete(void* memory) noexcept {
    allocated -= memory == nullptr ? 0 : malloc_usable_size(memory);
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    operator delete(memory);
}

namespace finch::fuzz {
namespace {

constexpr timeval processor_time{2, 0};
constexpr timeval processor_time_in_library{0, 300'000};  // inputs that make libhdf5 loop forever are common
constexpr timeval rest_outside_library{1, 700'000};
constexpr std::size_t slack_bytes = std::size_t{64} << 20;
constexpr int in_library = 42;  // exit code of a child that ended inside libhdf5
constexpr int by_signal = 43;   // exit code of a child that a signal ended outside libhdf5
constexpr std::uint64_t batch = 500;

/// Memory that all processes of a run share.
struct Shared {
    std::uint64_t next;  ///< the current case
    std::uint64_t refused;
};
Shared* shared = nullptr;
const char* current_target = "";

/// Returns whether `address` is in libhdf5 or in the C library's allocator. The allocator aborts if memory was damaged
/// earlier, and libhdf5 may have damaged it. Only a sanitizer can find the culprit; it has its own allocator.
bool is_library_code(void* address) {
    static constexpr std::array<std::string_view, 8> allocator{
        "malloc", "free", "calloc", "realloc", "__libc_malloc", "__libc_free", "cfree", "__libc_calloc"};
    Dl_info info{};
    if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
        return false;
    }
    return std::strstr(info.dli_fname, "libhdf5") != nullptr ||
           (std::strstr(info.dli_fname, "/libc.so") != nullptr && info.dli_sname != nullptr &&
            std::ranges::find(allocator, info.dli_sname) != allocator.end());
}

bool is_inside_library() {
    std::array<void*, 64> frames{};
    const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
    return std::any_of(frames.begin(), frames.begin() + count, is_library_code);
}

/// Returns whether libhdf5 called an address without code. backtrace() cannot unwind from such an address.
bool has_called_nothing([[maybe_unused]] const ucontext_t& context) {
#if defined(__x86_64__)
    const auto& registers = context.uc_mcontext.gregs;
    Dl_info info{};
    return ::dladdr(reinterpret_cast<void*>(registers[REG_RIP]), &info) == 0 &&
           is_library_code(*reinterpret_cast<void**>(registers[REG_RSP]));
#else
    return false;
#endif
}

volatile std::sig_atomic_t has_more_time = 0;  // 1: the current case may continue once after SIGPROF, outside libhdf5

void on_signal(int number, siginfo_t* /*info*/, void* context) {
    if (is_inside_library() || (context != nullptr && has_called_nothing(*static_cast<ucontext_t*>(context)))) {
        ::_exit(in_library);
    }
    if (number == SIGPROF && has_more_time != 0) {
        has_more_time = 0;
        const itimerval rest{{0, 0}, rest_outside_library};
        ::setitimer(ITIMER_PROF, &rest, nullptr);
        return;
    }
    std::fprintf(stderr, "fuzz: %s: case %llu ended by signal %d\n", current_target,
                 static_cast<unsigned long long>(shared->next), number);
    ::_exit(by_signal);
}

/// Applies one to eight changes: flips bits, writes special values, or removes, doubles, zeroes or inserts ranges.
Bytes mutated(const Target& target, std::uint64_t number) {
    RandomStream random(number, Purpose::test, crc32c(std::as_bytes(std::span(target.name))));
    Bytes bytes = target.corpus[random.below(target.corpus.size())];
    static constexpr std::array<std::uint64_t, 9> special{
        0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF};
    static constexpr std::string_view letters = "[]{},:&*-()=x0123456789\n .eE!|>'\"#%";
    const std::uint64_t changes = 1 + random.below(8);
    for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
        const std::size_t at = random.below(bytes.size());
        const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        const auto length = static_cast<std::ptrdiff_t>(1 + random.below(std::min<std::size_t>(64, bytes.size() - at)));
        const std::uint64_t value = special[random.below(special.size())];
        switch (random.below(7)) {
            case 0:
                bytes[at] ^= std::byte{1} << random.below(8);
                break;
            case 1:
                std::memcpy(&bytes[at], &value, std::min<std::size_t>(bytes.size() - at, 1U << random.below(4)));
                break;
            case 2:
                bytes.erase(place, place + length);
                break;
            case 3: {
                const Bytes copy(place, place + length);
                const std::uint64_t times = 1 + random.below(1U << random.below(8));
                for (std::uint64_t k = 0; k < times; ++k) {
                    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), copy.begin(), copy.end());
                }
                break;
            }
            case 4:
                std::fill_n(place, length, std::byte{0});
                break;
            case 5:
                bytes[at] = static_cast<std::byte>(letters[random.below(letters.size())]);
                break;
            default:
                bytes[at] = static_cast<std::byte>(random.below(256));
        }
    }
    target.repair(bytes);
    return bytes;
}

/// Reads the cases from shared->next up to `end`. Ends the process if a case breaks a rule.
void read_cases(const Target& target, std::uint64_t end) {
    const auto fail = [&](const std::string& what) {
        fmt::print(stderr, "fuzz: {}: case {}: {}\n", target.name, shared->next, what);
        std::_Exit(1);
    };
    for (; shared->next < end; ++shared->next) {
        const Bytes bytes = mutated(target, shared->next);
        const itimerval limit{{0, 0}, target.uses_hdf5 ? processor_time_in_library : processor_time};
        has_more_time = target.uses_hdf5 ? 1 : 0;
        ::setitimer(ITIMER_PROF, &limit, nullptr);
        most_allocated = allocated;
        const std::size_t before = allocated;
        try {
            target.read(bytes);
        } catch (const Error&) {
            ++shared->refused;
        } catch (const std::exception& error) {
            fail(fmt::format("threw {}", error.what()));
        }
        if (most_allocated - before > 4 * bytes.size() + slack_bytes) {
            fail(fmt::format("allocated {} bytes for {}", most_allocated - before, bytes.size()));
        }
    }
}

/// Calls read_cases() in a child process. Returns the child's wait status.
int read_in_child(const Target& target, std::uint64_t end) {
    const pid_t child = ::fork();
    if (child == 0) {
        read_cases(target, end);
        std::_Exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}

/// Reads cases in child processes. Returns how many children ended because of libhdf5. If a child ended inside libhdf5,
/// its case is skipped. If a child ended by another signal, the case is repeated alone: success then means that an
/// earlier case had damaged the memory.
std::uint64_t read_in_children(const Target& target, std::uint64_t end) {
    std::uint64_t ended = 0;
    while (shared->next < end) {
        int status = read_in_child(target, std::min(end, shared->next + batch));
        // If the memory is damaged, even the signal handler may crash: then the child ends by a plain signal.
        if (WIFSIGNALED(status) || WEXITSTATUS(status) == by_signal) {
            status = read_in_child(target, shared->next + 1);
            if (status == 0) {
                ++ended;
                continue;
            }
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == in_library) {
            ++ended;
            ++shared->next;
        } else if (status != 0) {
            fmt::print(stderr, "fuzz: {}: case {} ended its process (status {:#x})\n", target.name, shared->next,
                       status);
            std::exit(1);
        }
    }
    return ended;
}

void fuzz(const Target& target, std::uint64_t cases, std::uint64_t first) {
    current_target = target.name.c_str();
    *shared = {first, 0};
    std::uint64_t ended = 0;
    if (target.uses_hdf5) {
        ended = read_in_children(target, first + cases);
    } else {
        read_cases(target, first + cases);
    }
    fmt::print("{}: {} inputs, {} refused, {} ended inside libhdf5\n", target.name, cases, shared->refused, ended);
    std::fflush(stdout);
}

}  // namespace
}  // namespace finch::fuzz

// An error that a sanitizer finds in libhdf5 is not an error of Finch: end the child as a signal would.
extern "C" void __asan_on_error() {
    finch::fuzz::on_signal(SIGABRT, nullptr, nullptr);
}

int main(int argc, char** argv) {
    using namespace finch;
    const std::string wanted = argc > 1 ? argv[1] : "all";
    const std::uint64_t cases = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
    const std::uint64_t first = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
    fuzz::shared = static_cast<fuzz::Shared*>(
        ::mmap(nullptr, sizeof(fuzz::Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    std::array<void*, 1> frame{};
    ::backtrace(frame.data(), 1);  // the first call loads a library; a damaged process has no memory for it
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGPROF}) {
        struct sigaction action {};
        action.sa_sigaction = fuzz::on_signal;
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        ::sigaction(number, &action, nullptr);
    }
    const testing::TemporaryFolder folder;
    bool found = false;
    for (const fuzz::Target& target : fuzz::targets(folder.path().string())) {
        if (wanted == "all" || wanted == target.name) {
            fuzz::fuzz(target, cases, first);
            found = true;
        }
    }
    return found ? 0 : 2;
}
