#include "step_context.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace finch::backend::cuda {
namespace {

constexpr std::int64_t most_steps = 1024;
constexpr std::int64_t most_indices = std::int64_t{1} << 16;   ///< of one fill()
constexpr std::int64_t most_brought = std::int64_t{64} << 20;  ///< bytes of images of one fill()
constexpr std::size_t staging_bytes = std::size_t{4} << 20;    ///< of each of the two pinned buffers
constexpr std::size_t row_bytes = sizeof(StepRow);

StepRow step_row(const StepScalars& step, std::int64_t samples) {
    return {.grad_scale = step.grad_scale,
            .label_smoothing = step.label_smoothing,
            .optimizer = step.optimizer,
            .average_share = step.average_share,
            .random_key = {{step.random_key[0], step.random_key[1]}},
            .first_sample = step.first_sample,
            .samples = samples};
}

}  // namespace

CudaStepContext::CudaStepContext(Stream& stream, const Images& images, std::int64_t batch)
    : stream_(stream),
      images_(images),
      resident_(images.store ? nullptr : stream.shared()->sets->get(stream, images)),
      capacity_(steps_that_fit(images, batch)),
      batch_(static_cast<std::size_t>(batch)) {
    view_.pixels_per_image = images.pixels_per_image;
    view_.channels = std::ssize(images.mean);
    view_.batch = batch;
    view_.distortions = images.distortions;
    view_.float_pixels = images.float_pixels ? 1 : 0;
    allocate_steps();
    bring_constants();
    if (resident_) {
        view_.pixels = static_cast<const std::uint8_t*>(resident_->pixels.get());
        view_.answers = resident_->answers.get();
    } else {
        allocate_staging();
    }
    FINCH_CUDA(cudaStreamSynchronize(stream.get()));
}

/// Waits for the stream: work on the stream may still read the memory that is freed now.
CudaStepContext::~CudaStepContext() {
    static_cast<void>(cudaStreamSynchronize(stream_.get()));
}

/// Returns the same capacity for streamed and for resident images. Each rank of a worker decides by itself whether it
/// streams images, but all ranks must request the same steps.
std::int64_t CudaStepContext::steps_that_fit(const Images& images, std::int64_t batch) {
    const std::int64_t bytes = std::max<std::int64_t>(1, batch * static_cast<std::int64_t>(images.bytes_per_image()));
    return std::max<std::int64_t>(1, std::min({most_steps, most_indices / batch, most_brought / bytes}));
}

void CudaStepContext::allocate_steps() {
    const auto steps = static_cast<std::size_t>(capacity_);
    const std::size_t bytes = steps * (row_bytes + batch_ * sizeof(std::int64_t));
    steps_ = stream_.allocate(bytes);
    host_steps_ = stream_.allocate_pinned(bytes);
    predictions_ = stream_.allocate(steps * batch_ * sizeof(std::int32_t));
    state_ = stream_.allocate(sizeof(StepState));
    host_state_ = stream_.allocate_pinned(sizeof(StepState));
    view_.rows = static_cast<const StepRow*>(steps_.get());
    view_.indices =
        reinterpret_cast<const std::int64_t*>(static_cast<const std::byte*>(steps_.get()) + steps * row_bytes);
    view_.predictions = static_cast<std::int32_t*>(predictions_.get());
    view_.state = static_cast<StepState*>(state_.get());
    set_loss_scale({});
}

void CudaStepContext::bring_constants() {
    const std::array<const std::vector<float>*, 3> lists{&images_.mean, &images_.deviation, &images_.class_weights};
    const std::array<const float**, 3> places{&view_.mean, &view_.deviation, &view_.class_weights};
    std::size_t floats = 0;
    for (const auto* list : lists) {
        floats += list->size();
    }
    constants_ = stream_.allocate(floats * sizeof(float));
    auto* place = static_cast<float*>(constants_.get());
    for (std::size_t i = 0; i < lists.size(); ++i) {
        if (!lists[i]->empty()) {
            FINCH_CUDA(cudaMemcpyAsync(place, lists[i]->data(), lists[i]->size() * sizeof(float),
                                       cudaMemcpyHostToDevice, stream_.get()));
            *places[i] = place;
            place += lists[i]->size();
        }
    }
}

void CudaStepContext::allocate_staging() {
    const std::size_t images = static_cast<std::size_t>(capacity_) * batch_;
    const std::size_t pixels = (images * images_.bytes_per_image() + 15) / 16 * 16;  // the answers follow, aligned
    brought_ = stream_.allocate(pixels + images * images_.bytes_per_answer());
    host_answers_ = stream_.allocate_pinned(images * images_.bytes_per_answer());
    view_.pixels = static_cast<const std::uint8_t*>(brought_.get());
    view_.answers = static_cast<const std::byte*>(brought_.get()) + pixels;
    if (images_.store) {
        const std::size_t bytes =
            finch::pixels::Loader::ring_bytes(images_.bytes_per_image(), view_.batch, images_.prefetch);
        ring_ = stream_.allocate_pinned(bytes);
        copied_ = make_event();
        loader_.emplace(images_.store, view_.batch, images_.prefetch,
                        std::span(static_cast<std::uint8_t*>(ring_.get()), bytes));
        return;
    }
    for (Staging& staging : staging_) {
        staging.pixels = stream_.allocate_pinned(std::max(staging_bytes, images_.bytes_per_image()));
        staging.copied = make_event();
    }
}

void CudaStepContext::fill(std::span<const std::int64_t> indices, std::span<const StepScalars> steps) {
    const std::vector<std::int64_t> samples = real_samples(indices, steps.size(), batch_, capacity_);
    filled_ = indices.size();
    if (steps.empty()) {
        return;
    }
    auto* rows = static_cast<StepRow*>(host_steps_.get());
    std::transform(steps.begin(), steps.end(), samples.begin(), rows, step_row);
    const std::size_t indices_offset = static_cast<std::size_t>(capacity_) * row_bytes;
    auto* host_indices = reinterpret_cast<std::int64_t*>(static_cast<std::byte*>(host_steps_.get()) + indices_offset);
    if (resident_) {
        std::copy(indices.begin(), indices.end(), host_indices);
    } else {
        bring_images(indices, {host_indices, indices.size()});
    }
    FINCH_CUDA(cudaMemcpyAsync(steps_.get(), rows, steps.size() * row_bytes, cudaMemcpyHostToDevice, stream_.get()));
    FINCH_CUDA(cudaMemcpyAsync(static_cast<std::byte*>(steps_.get()) + indices_offset, host_indices,
                               indices.size_bytes(), cudaMemcpyHostToDevice, stream_.get()));
    FINCH_CUDA(cudaMemsetAsync(&view_.state->row, 0, sizeof view_.state->row, stream_.get()));
}

void CudaStepContext::announce(std::span<const std::int64_t> indices) {
    if (loader_) {
        loader_->announce(indices);
    }
}

/// Copies the images of `indices` to the device, one after another, and writes their positions on the device to
/// `positions`.
void CudaStepContext::bring_images(std::span<const std::int64_t> indices, std::span<std::int64_t> positions) {
    const std::size_t answer = images_.bytes_per_answer();
    const std::span<const std::byte> all_answers = images_.answers();
    auto* answers = static_cast<std::byte*>(host_answers_.get());
    for (std::size_t i = 0; i < indices.size(); ++i) {
        positions[i] = indices[i] >= 0 ? static_cast<std::int64_t>(i) : -1;
        if (indices[i] >= 0) {
            const std::size_t from = static_cast<std::size_t>(indices[i]) * answer;
            std::memcpy(answers + i * answer, all_answers.data() + from, answer);
        }
    }
    if (loader_) {
        load_pixels(indices);
    } else {
        gather_pixels(indices);
    }
    FINCH_CUDA(cudaMemcpyAsync(const_cast<void*>(view_.answers), answers, indices.size() * answer,
                               cudaMemcpyHostToDevice, stream_.get()));
}

/// Copies images from files. While one batch is copied, the loader reads the next batches.
void CudaStepContext::load_pixels(std::span<const std::int64_t> indices) {
    const std::size_t bytes = batch_ * images_.bytes_per_image();
    auto* target = const_cast<std::uint8_t*>(view_.pixels);
    loader_->want(indices);
    for (std::size_t begin = 0; begin < indices.size(); begin += batch_, target += bytes) {
        FINCH_CUDA(cudaEventSynchronize(copied_.get()));  // next() reuses the buffer that is copied from
        FINCH_CUDA(cudaMemcpyAsync(target, loader_->next().data(), bytes, cudaMemcpyHostToDevice, stream_.get()));
        FINCH_CUDA(cudaEventRecord(copied_.get(), stream_.get()));
    }
}

/// Copies images from host memory. While one pinned buffer is copied to the device, the other is filled.
void CudaStepContext::gather_pixels(std::span<const std::int64_t> indices) {
    const std::size_t size = images_.bytes_per_image();
    const std::size_t at_once = std::max<std::size_t>(1, staging_bytes / std::max<std::size_t>(1, size));
    auto* target = const_cast<std::uint8_t*>(view_.pixels);
    std::size_t buffer = 0;
    for (std::size_t begin = 0; begin < indices.size(); begin += at_once, buffer ^= 1U) {
        Staging& staging = staging_[buffer];
        FINCH_CUDA(cudaEventSynchronize(staging.copied.get()));
        auto* pixels = static_cast<std::uint8_t*>(staging.pixels.get());
        const std::size_t end = std::min(begin + at_once, indices.size());
        for (std::size_t i = begin; i < end; ++i) {
            if (indices[i] >= 0) {
                const std::size_t from = static_cast<std::size_t>(indices[i]) * size;
                std::memcpy(pixels + (i - begin) * size, images_.pixels.data() + from, size);
            }
        }
        FINCH_CUDA(cudaMemcpyAsync(target + begin * size, pixels, (end - begin) * size, cudaMemcpyHostToDevice,
                                   stream_.get()));
        FINCH_CUDA(cudaEventRecord(staging.copied.get(), stream_.get()));
    }
}

/// Reads a part of the device's StepState; write() writes a part. read() and write() block.
template <class Part>
Part CudaStepContext::read(const Part& part) const {
    auto* host = static_cast<Part*>(host_state_.get());
    FINCH_CUDA(cudaMemcpyAsync(host, &part, sizeof part, cudaMemcpyDeviceToHost, stream_.get()));
    FINCH_CUDA(cudaStreamSynchronize(stream_.get()));
    return *host;
}
template <class Part>
void CudaStepContext::write(const Part& value, Part& part) const {
    auto* host = static_cast<Part*>(host_state_.get());
    *host = value;
    FINCH_CUDA(cudaMemcpyAsync(&part, host, sizeof part, cudaMemcpyHostToDevice, stream_.get()));
    FINCH_CUDA(cudaStreamSynchronize(stream_.get()));
}

LossSums CudaStepContext::sums() const {
    return read(view_.state->sums);
}
void CudaStepContext::set_sums(const LossSums& sums) {
    write(sums, view_.state->sums);
}
std::vector<std::int32_t> CudaStepContext::predictions() const {
    std::vector<std::int32_t> found(filled_);
    FINCH_CUDA(cudaMemcpyAsync(found.data(), view_.predictions, filled_ * sizeof(std::int32_t), cudaMemcpyDeviceToHost,
                               stream_.get()));
    FINCH_CUDA(cudaStreamSynchronize(stream_.get()));
    return found;
}
LossScale CudaStepContext::loss_scale() const {
    return read(view_.state->loss_scale);
}
void CudaStepContext::set_loss_scale(const LossScale& scale) {
    write(scale, view_.state->loss_scale);
}

}  // namespace finch::backend::cuda
