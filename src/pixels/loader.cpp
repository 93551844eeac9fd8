#include "finch/pixels/loader.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

namespace finch::pixels {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{256} << 10;  ///< per read of a thread, but at least one image
constexpr std::size_t stack_bytes = std::size_t{256} << 10;  ///< the usual 8 MiB would count against `ulimit -v`
constexpr std::size_t alignment = 64;                        ///< of a buffer, in bytes

std::size_t buffer_bytes(std::size_t bytes_per_image, std::int64_t batch) {
    const std::size_t bytes = bytes_per_image * static_cast<std::size_t>(batch);
    return (bytes + alignment - 1) / alignment * alignment;
}

/// Blocks all signals on this thread. Threads that this thread creates inherit the signal mask.
class NoSignals {
public:
    NoSignals() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;

private:
    sigset_t before_{};
};

}  // namespace

ReadThreads::ReadThreads(const Store& store, std::int64_t count)
    : store_(store),
      threads_(static_cast<std::size_t>(count), Thread{.owner = this, .scratch = Scratch(store.bytes_per_image())}) {
    if (const int code = make_threads(); code != 0) {
        end();
        throw ConfigError(
            fmt::format("data.prefetch.threads: the system refuses {} threads ({})", count, std::strerror(code)));
    }
}

ReadThreads::~ReadThreads() {
    end();
}

/// Returns 0, or the error code if a thread could not be made.
int ReadThreads::make_threads() {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, stack_bytes);
    const NoSignals while_they_are_made;
    std::size_t made = 0;
    int code = 0;
    while (code == 0 && made < threads_.size()) {
        code = ::pthread_create(&threads_[made].id, &attributes, body, &threads_[made]);
        made += code == 0 ? 1 : 0;
    }
    ::pthread_attr_destroy(&attributes);
    threads_.resize(made);
    return code;
}

void ReadThreads::end() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    work_.notify_all();
    for (const Thread& thread : threads_) {
        ::pthread_join(thread.id, nullptr);
    }
}

void* ReadThreads::body(void* thread) {
    auto& mine = *static_cast<Thread*>(thread);
    mine.owner->work(mine.scratch);
    return nullptr;
}

void ReadThreads::work(std::span<std::uint8_t> scratch) {
    const std::size_t bytes = store_.bytes_per_image();
    std::unique_lock lock(mutex_);
    while (true) {
        work_.wait(lock, [this] { return ends_ || !chunks_.empty(); });
        if (ends_) {
            return;
        }
        const Chunk chunk = chunks_.front();
        chunks_.pop_front();
        Batch& batch = *chunk.batch;
        lock.unlock();
        const Failure failure = store_.read(std::span(batch.indices).subspan(chunk.first, chunk.count),
                                            batch.memory.subspan(chunk.first * bytes, chunk.count * bytes), scratch);
        lock.lock();
        if (failure && !batch.failure) {
            batch.failure = failure;
        }
        --batch.chunks_left;
        done_.notify_all();
    }
}

void ReadThreads::add(Batch& batch) {
    const std::size_t images =
        std::max<std::size_t>(1, chunk_bytes / std::max<std::size_t>(1, store_.bytes_per_image()));
    {
        const std::lock_guard lock(mutex_);
        for (std::size_t first = 0; first < batch.real; first += images) {
            chunks_.push_back({&batch, first, std::min(images, batch.real - first)});
            ++batch.chunks_left;
        }
    }
    work_.notify_all();
}

Failure ReadThreads::wait(const Batch& batch) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&batch] { return batch.chunks_left == 0; });
    return batch.failure;
}

void ReadThreads::cancel(Batch& batch) {
    std::unique_lock lock(mutex_);
    batch.chunks_left -= std::erase_if(chunks_, [&batch](const Chunk& chunk) { return chunk.batch == &batch; });
    done_.wait(lock, [&batch] { return batch.chunks_left == 0; });
}

Loader::Loader(std::shared_ptr<Store> store, std::int64_t batch, Prefetch prefetch, std::span<std::uint8_t> ring)
    : store_(std::move(store)), threads_(store_->threads(prefetch.threads)), batch_(static_cast<std::size_t>(batch)) {
    const std::size_t bytes = buffer_bytes(store_->bytes_per_image(), batch);
    for (std::int64_t buffer = 0; buffer <= prefetch.batches; ++buffer) {
        free_.push_back(ring.subspan(static_cast<std::size_t>(buffer) * bytes, bytes));
    }
}

Loader::~Loader() {
    drop_from(0);
}

std::size_t Loader::ring_bytes(std::size_t bytes_per_image, std::int64_t batch, Prefetch prefetch) {
    return static_cast<std::size_t>(prefetch.batches + 1) * buffer_bytes(bytes_per_image, batch);
}

void Loader::want(std::span<const std::int64_t> indices) {
    place(0, indices);
    wanted_ = indices.size() / batch_;
}

void Loader::announce(std::span<const std::int64_t> indices) {
    place(wanted_, indices);
}

/// Sets the batches from index `first` on to `indices`. If an expected batch differs from the new one, this batch and
/// all batches behind it are dropped first.
void Loader::place(std::size_t first, std::span<const std::int64_t> indices) {
    for (std::size_t at = 0; at < indices.size(); at += batch_, ++first) {
        const auto batch = indices.subspan(at, batch_);
        if (first < expected_.size() && std::equal(batch.begin(), batch.end(), expected_[first]->indices.begin())) {
            continue;
        }
        drop_from(first);
        auto added = std::make_unique<Batch>();
        added->indices.assign(batch.begin(), batch.end());
        added->real = static_cast<std::size_t>(
            std::find_if(batch.begin(), batch.end(), [](std::int64_t image) { return image < 0; }) - batch.begin());
        expected_.push_back(std::move(added));
    }
    start();
}

void Loader::drop_from(std::size_t first) {
    while (expected_.size() > first) {
        Batch& last = *expected_.back();
        if (!last.memory.empty()) {
            threads_.cancel(last);
            free_.push_back(last.memory);
        }
        expected_.pop_back();
    }
}

/// Starts reading the next batches in order, as long as there are free buffers.
void Loader::start() {
    for (const std::unique_ptr<Batch>& batch : expected_) {
        if (free_.empty()) {
            return;
        }
        if (batch->memory.empty()) {
            batch->memory = free_.back();
            free_.pop_back();
            threads_.add(*batch);
        }
    }
}

std::span<const std::uint8_t> Loader::next() {
    if (wanted_ == 0) {
        throw Error("the batch of images was not prefetched");
    }
    if (current_) {
        free_.push_back(std::exchange(current_, nullptr)->memory);
        start();
    }
    current_ = std::move(expected_.front());
    expected_.pop_front();
    --wanted_;
    if (const Failure failure = threads_.wait(*current_)) {
        throw StorageError(store_->text(failure));
    }
    return current_->memory;
}

}  // namespace finch::pixels
