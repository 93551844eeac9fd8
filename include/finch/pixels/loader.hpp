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

/// A batch of images that is waiting to be read, being read, or read.
struct Batch {
    std::vector<std::int64_t> indices;  ///< −1 is padding, only at the end; it is not read
    std::size_t real = 0;               ///< number of images without padding
    std::span<std::uint8_t> memory{};   ///< empty: no buffer is free yet
    std::size_t chunks_left = 0;        ///< guarded by the threads' mutex
    Failure failure{};                  ///< the first one; guarded by the threads' mutex
};

/// The threads of a rank that read a store's images for all trainings. Finch itself makes no other threads, except one
/// to abort NCCL. The reading threads only read and copy image data, with all asynchronous signals blocked. The reading
/// threads throw no exceptions, call no libraries and allocate no memory: an allocation would give each its own malloc
/// arena.
class ReadThreads {
public:
    /// Starts `count` threads. `store` must outlive the threads. Throws ConfigError if the system refuses a thread.
    ReadThreads(const Store& store, std::int64_t count);
    /// Waits until each thread has finished its current read, which is at most a part of a batch.
    ~ReadThreads();
    ReadThreads(const ReadThreads&) = delete;
    ReadThreads& operator=(const ReadThreads&) = delete;

    /// Queues `batch` behind all batches that were added before. `batch.memory` must be set.
    void add(Batch& batch);
    /// Waits until the whole `batch` is read, and returns the first failure, if any.
    [[nodiscard]] Failure wait(const Batch& batch);
    /// Cancels `batch`. The memory of the batch may be reused after this call returns.
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
    std::condition_variable work_;  ///< there is a chunk, or the threads must end
    std::condition_variable done_;  ///< a chunk is done
    std::deque<Chunk> chunks_;
    bool ends_ = false;
    std::vector<Thread> threads_;
};

/// A prefetcher of image batches for one StepContext. A loader returns the batches in the order of the requests, and
/// reads ahead into a ring of buffers. The returned bytes do not depend on which thread reads an image. Only one thread
/// may use a loader.
class Loader {
public:
    /// `batch` is the number of images per batch. `ring` has ring_bytes() bytes and must outlive the loader.
    Loader(std::shared_ptr<Store> store, std::int64_t batch, Prefetch prefetch, std::span<std::uint8_t> ring);
    /// Cancels all reads that are in progress or queued.
    ~Loader();
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;

    /// Returns the size in bytes of a ring of Prefetch::batches + 1 buffers: one is in use, the others are read ahead.
    [[nodiscard]] static std::size_t ring_bytes(std::size_t bytes_per_image, std::int64_t batch, Prefetch prefetch);

    /// Requests the batches that next() will return. `indices` has the shape (batches, batch), with −1 as padding at
    /// the end of a batch. Batches that were announced before are kept if they are the same.
    void want(std::span<const std::int64_t> indices);
    /// Announces the batches that will probably be requested next, to read them ahead.
    void announce(std::span<const std::int64_t> indices);
    /// Waits for the next requested batch and returns it: (batch, H, W, C) as bytes, valid until the next call. The
    /// bytes of padding are not set. Throws StorageError if an image could not be read.
    [[nodiscard]] std::span<const std::uint8_t> next();

private:
    void place(std::size_t first, std::span<const std::int64_t> indices);
    void drop_from(std::size_t first);
    void start();

    std::shared_ptr<Store> store_;
    ReadThreads& threads_;
    std::size_t batch_;
    std::vector<std::span<std::uint8_t>> free_;    ///< buffers without a batch
    std::deque<std::unique_ptr<Batch>> expected_;  ///< in order; the first ones are being read or are read
    std::size_t wanted_ = 0;                       ///< number of requested batches at the front
    std::unique_ptr<Batch> current_;               ///< the batch that next() returned
};

}  // namespace finch::pixels
