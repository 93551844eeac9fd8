#pragma once

#include <csetjmp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <ucontext.h>
#include <vector>

/// Runs the threads of a GPU block as fibers on one CPU thread.
namespace finch::rehearsal {

/// The order in which the threads of a block run. A kernel that lacks a barrier gives different results for different
/// orders.
enum class ThreadOrder { forward, backward, interleaved };
void set_thread_order(ThreadOrder order);

enum class Wait { nothing, barrier, shuffle, ended };

/// A thread of a block. It keeps its own stack for the next block.
struct Fiber {
    ucontext_t first;  ///< context of the start
    std::unique_ptr<unsigned char[]> stack;
    std::jmp_buf place;  ///< context to resume from
    bool has_begun = false;
    Wait waits = Wait::nothing;
};

/// Runs blocks of the same size, one after another. Only one Block may run at a time. The shared memory is kept.
class Block {
public:
    static constexpr std::size_t slot_bytes = 16;

    Block(int threads, std::size_t shared_bytes);

    /// Fills the shared memory with NaN, so that reads of uninitialised memory are visible.
    void clear_shared();

    /// Runs one block: calls `body(index)` for every thread. Aborts the program with a message if not all threads of a
    /// block reach a barrier, or not all threads of a warp reach a shuffle.
    void run(const std::function<void(int)>& body);

    /// Called by the running thread. Runs other threads until all threads of the barrier or shuffle have called wait().
    void wait(int index, Wait what);
    [[nodiscard]] unsigned char* shared() { return shared_.get(); }
    /// Returns the memory in which a thread stores its value of a shuffle.
    [[nodiscard]] unsigned char* slot(int index);

private:
    static void live();
    void resume(int index);
    [[nodiscard]] bool release();
    [[noreturn]] void fail(const std::string& what) const;

    int threads_;
    std::size_t shared_bytes_;
    std::unique_ptr<unsigned char[]> shared_;
    std::vector<unsigned char> slots_;
    std::jmp_buf scheduler_;
    const std::function<void(int)>* body_ = nullptr;
    int running_ = 0;
};

}  // namespace finch::rehearsal
