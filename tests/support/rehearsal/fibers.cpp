#include "support/rehearsal/fibers.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace finch::rehearsal {
namespace {

constexpr std::size_t stack_bytes = 64 * 1024;
constexpr int warp = 32;

ThreadOrder thread_order = ThreadOrder::forward;
Block* present = nullptr;  ///< the block that the fibers execute

/// Returns the fibers of all blocks. Fibers never end: each waits for its next block.
std::vector<Fiber>& fibers() {
    static auto* const all = new std::vector<Fiber>(1024);
    return *all;
}

/// Returns the order in which the threads run.
std::vector<int> turns(int threads) {
    std::vector<int> order(static_cast<std::size_t>(threads));
    std::iota(order.begin(), order.end(), 0);
    if (thread_order == ThreadOrder::backward) {
        std::reverse(order.begin(), order.end());
    } else if (thread_order == ThreadOrder::interleaved) {
        std::stable_partition(order.begin(), order.end(), [](int index) { return index % 3 == 1; });
    }
    return order;
}

}  // namespace

void set_thread_order(ThreadOrder order) {
    thread_order = order;
}

Block::Block(int threads, std::size_t shared_bytes)
    : threads_(threads),
      shared_bytes_(shared_bytes),
      shared_(new unsigned char[std::max<std::size_t>(1, shared_bytes)]),
      slots_(static_cast<std::size_t>(threads) * slot_bytes) {}

void Block::clear_shared() {
    std::memset(shared_.get(), 0xff, shared_bytes_);
}

unsigned char* Block::slot(int index) {
    if (index < 0 || index >= threads_) {
        fail("a shuffle with a lane that the block does not have");
    }
    return slots_.data() + static_cast<std::size_t>(index) * slot_bytes;
}

void Block::run(const std::function<void(int)>& body) {
    body_ = &body;
    present = this;
    const std::vector<int> order = turns(threads_);
    for (const int index : order) {
        fibers()[static_cast<std::size_t>(index)].waits = Wait::nothing;
    }
    do {
        for (const int index : order) {
            if (fibers()[static_cast<std::size_t>(index)].waits == Wait::nothing) {
                resume(index);
            }
        }
    } while (release());
}

/// The main function of a fiber. It has no local variables, because the block changes between two calls of its body.
void Block::live() {
    for (;;) {
        (*present->body_)(present->running_);
        present->wait(present->running_, Wait::ended);
    }
}

void Block::resume(int index) {
    Fiber& fiber = fibers()[static_cast<std::size_t>(index)];
    running_ = index;
    if (_setjmp(scheduler_) != 0) {
        return;
    }
    if (fiber.has_begun) {
        _longjmp(fiber.place, 1);  // unlike swapcontext, this makes no system call
    }
    fiber.has_begun = true;
    fiber.stack.reset(new unsigned char[stack_bytes]);
    getcontext(&fiber.first);
    fiber.first.uc_stack.ss_sp = fiber.stack.get();
    fiber.first.uc_stack.ss_size = stack_bytes;
    makecontext(&fiber.first, &Block::live, 0);
    setcontext(&fiber.first);
}

void Block::wait(int index, Wait what) {
    Fiber& fiber = fibers()[static_cast<std::size_t>(index)];
    fiber.waits = what;
    if (_setjmp(fiber.place) == 0) {
        _longjmp(present->scheduler_, 1);
    }
}

/// Resumes the fibers that wait at a barrier or shuffle that all their peers have reached. Returns false if all fibers
/// have ended.
bool Block::release() {
    const auto first = fibers().begin();
    const auto last = first + threads_;
    const auto all_wait_for = [&](auto begin, auto end, Wait what) {
        return std::all_of(begin, end, [&](const Fiber& fiber) { return fiber.waits == what; });
    };
    if (all_wait_for(first, last, Wait::ended)) {
        return false;
    }
    if (all_wait_for(first, last, Wait::barrier)) {
        std::for_each(first, last, [](Fiber& fiber) { fiber.waits = Wait::nothing; });
        return true;
    }
    bool released = false;
    for (auto begin = first; begin + warp <= last; begin += warp) {
        if (all_wait_for(begin, begin + warp, Wait::shuffle)) {
            std::for_each(begin, begin + warp, [](Fiber& fiber) { fiber.waits = Wait::nothing; });
            released = true;
        }
    }
    if (!released) {
        fail("some threads of a block wait at a barrier or a shuffle that others do not reach");
    }
    return true;
}

void Block::fail(const std::string& what) const {
    std::fprintf(stderr, "rehearsal: %s\n", what.c_str());
    std::abort();
}

}  // namespace finch::rehearsal
