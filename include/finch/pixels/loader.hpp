#pragma once

#include "finch/pixels/store.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <span>
#include <vector>

namespace finch::pixels {

/// A batch of images that is to be read, or is.
struct Batch {
    std::vector<std::int64_t> indices;  ///< −1, at the end only, is padding, which is not read
    std::size_t real = 0;               ///< images that are no padding
    std::span<std::uint8_t> memory{};   ///< empty: there is no room yet
    std::size_t chunks_left = 0;        ///< guarded by the threads' mutex, as is
    Failure failure{};                  ///< the first
};

/// The threads of a rank that read a store's images, for all who train on it: the only ones that Finch itself makes.
/// They read and copy, and do nothing else: no signal reaches them, they throw nothing, call no library, and allocate
/// nothing (each would get an arena of addresses of its own).
class ReadThreads {
public:
    /// `store` must outlive it. Throws ConfigError if the system refuses a thread.
    ReadThreads(const Store& store, std::int64_t count);
    /// Waits for what a thread is reading at this moment, a part of a batch at most.
    ~ReadThreads();
    ReadThreads(const ReadThreads&) = delete;
    ReadThreads& operator=(const ReadThreads&) = delete;

    /// Has `batch`, which has its memory, read after those that were added before.
    void add(Batch& batch);
    /// Waits until it is read, or could not be.
    [[nodiscard]] Failure wait(const Batch& batch);
    /// Cancels `batch`; its memory may be reused after return.
    void cancel(Batch& batch);

private:
    struct Chunk {
        Batch* batch = nullptr;
        std::size_t first = 0;
        std::size_t count = 0;
    };
    using Scratch = std::vector<std::uint8_t>;
    struct Thread {
        ReadThreads* owner = nullptr;
        pthread_t id{};
        Scratch scratch{};  ///< for one image
    };

    static void* body(void* thread);
    void work(std::span<std::uint8_t> scratch);
    [[nodiscard]] int make_threads();
    void end();

    const Store& store_;
    std::mutex mutex_;
    std::condition_variable work_;  ///< there is some, or an end of it
    std::condition_variable done_;  ///< some of it
    std::deque<Chunk> chunks_;
    bool ends_ = false;
    std::vector<Thread> threads_;
};

/// Brings one StepContext its batches in the order in which it asks for them, and reads ahead of it into a ring of
/// buffers. Which threads read what changes no bit. Used by one thread.
class Loader {
public:
    /// `batch` images each. `ring` has ring_bytes() and outlives it.
    Loader(std::shared_ptr<Store> store, std::int64_t batch, Prefetch prefetch, std::span<std::uint8_t> ring);
    /// Ends what is under way.
    ~Loader();
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;

    /// Prefetch::batches, and the one in use.
    [[nodiscard]] static std::size_t ring_bytes(std::size_t bytes_per_image, std::int64_t batch, Prefetch prefetch);

    /// next() is to bring the batches `indices` (batches, batch; −1 at the end of each is padding). What was announced
    /// is kept as far as it is the same.
    void want(std::span<const std::int64_t> indices);
    /// Announces the images that will probably be requested after that.
    void announce(std::span<const std::int64_t> indices);
    /// Waits for the next batch that is wanted: (batch, H, W, C) as bytes, until the next call; padding is left as it
    /// is. Throws StorageError if an image could not be read.
    [[nodiscard]] std::span<const std::uint8_t> next();

private:
    void place(std::size_t first, std::span<const std::int64_t> indices);
    void drop_from(std::size_t first);
    void start();

    std::shared_ptr<Store> store_;
    ReadThreads& threads_;
    std::size_t batch_;
    std::vector<std::span<std::uint8_t>> free_;    ///< buffers
    std::deque<std::unique_ptr<Batch>> expected_;  ///< in order; the first ones are under way
    std::size_t wanted_ = 0;                       ///< of those
    std::unique_ptr<Batch> current_;               ///< that next() gave
};

}  // namespace finch::pixels
