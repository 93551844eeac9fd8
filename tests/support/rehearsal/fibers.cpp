#include "support/rehearsal/fibers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace finch::rehearsal {
namespace {

constexpr std::size_t stack_bytes = 64 * 1024;
constexpr int warp = 32;

ThreadOrder thread_order = ThreadOrder::forward;

/// The turns of so many threads.
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
    : fibers_(static_cast<std::size_t>(threads)),
      shared_bytes_(shared_bytes),
      shared_(new unsigned char[std::max<std::size_t>(1, shared_bytes)]),
      slots_(static_cast<std::size_t>((threads + warp - 1) / warp * warp) * slot_bytes) {
    for (Fiber& fiber : fibers_) {
        fiber.stack.reset(new unsigned char[stack_bytes]);
    }
}

unsigned char* Block::slot(int index) {
    if (index < 0 || static_cast<std::size_t>(index) >= fibers_.size()) {
        fail("a shuffle with a lane that the block does not have");
    }
    return slots_.data() + static_cast<std::size_t>(index) * slot_bytes;
}

void Block::run(const std::function<void(int)>& body) {
    body_ = &body;
    std::memset(shared_.get(), 0xff, shared_bytes_);  // NaN: what nobody has written shows
    for (Fiber& fiber : fibers_) {
        getcontext(&fiber.context);
        fiber.context.uc_stack = {fiber.stack.get(), 0, stack_bytes};
        fiber.context.uc_link = &scheduler_;
        fiber.waits = Wait::nothing;
        const auto self = reinterpret_cast<std::uintptr_t>(this);
        makecontext(&fiber.context, reinterpret_cast<void (*)()>(&Block::enter), 2, static_cast<unsigned>(self >> 32),
                    static_cast<unsigned>(self));
    }
    const std::vector<int> order = turns(static_cast<int>(fibers_.size()));
    do {
        for (const int index : order) {
            if (fibers_[static_cast<std::size_t>(index)].waits == Wait::nothing) {
                resume(index);
            }
        }
    } while (release());
}

void Block::enter(unsigned high, unsigned low) {
    auto* block = reinterpret_cast<Block*>((static_cast<std::uintptr_t>(high) << 32) | low);
    const int index = block->running_;
    (*block->body_)(index);
    block->fibers_[static_cast<std::size_t>(index)].waits = Wait::ended;
}

void Block::resume(int index) {
    running_ = index;
    swapcontext(&scheduler_, &fibers_[static_cast<std::size_t>(index)].context);
}

void Block::wait(int index, Wait what) {
    Fiber& fiber = fibers_[static_cast<std::size_t>(index)];
    fiber.waits = what;
    swapcontext(&fiber.context, &scheduler_);
}

/// Lets go on whoever has all that it waits for. False where all have ended.
bool Block::release() {
    const auto all_wait_for = [&](auto begin, auto end, Wait what) {
        return std::all_of(begin, end, [&](const Fiber& fiber) { return fiber.waits == what; });
    };
    if (all_wait_for(fibers_.begin(), fibers_.end(), Wait::ended)) {
        return false;
    }
    bool released = false;
    if (all_wait_for(fibers_.begin(), fibers_.end(), Wait::barrier)) {
        for (Fiber& fiber : fibers_) {
            fiber.waits = Wait::nothing;
        }
        return true;
    }
    for (std::size_t begin = 0; begin + warp <= fibers_.size(); begin += warp) {
        const auto first = fibers_.begin() + static_cast<std::ptrdiff_t>(begin);
        if (all_wait_for(first, first + warp, Wait::shuffle)) {
            std::for_each(first, first + warp, [](Fiber& fiber) { fiber.waits = Wait::nothing; });
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
