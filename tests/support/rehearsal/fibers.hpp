#pragma once

#include <csetjmp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <ucontext.h>
#include <vector>

/// The threads of a GPU's block, on one thread of a CPU.
namespace finch::rehearsal {

/// In which order the threads of a block take their turns. A kernel that lacks a barrier gives another result in
/// another order.
enum class ThreadOrder { forward, backward, interleaved };
void set_thread_order(ThreadOrder order);

enum class Wait { nothing, barrier, shuffle, ended };

/// A thread of a block: a stack of its own, which it keeps for the next block.
struct Fiber {
    ucontext_t first;  ///< how it begins
    std::unique_ptr<unsigned char[]> stack;
    std::jmp_buf place;  ///< where it goes on
    bool has_begun = false;
    Wait waits = Wait::nothing;
};

/// Runs blocks of the same size, one after another. One Block at a time.
class Block {
public:
    static constexpr std::size_t slot_bytes = 16;

    Block(int threads, std::size_t shared_bytes);

    /// One block: `body(index)` for every thread. Ends the program with a message where threads wait for each other in
    /// vain: a barrier that not all of a block reach, a shuffle that not all of a warp reach.
    void run(const std::function<void(int)>& body);

    /// Of the thread that runs: lets others run until all that it waits for have come here too.
    void wait(int index, Wait what);
    [[nodiscard]] unsigned char* shared() { return shared_.get(); }
    /// What a thread shows to the others of its warp.
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
