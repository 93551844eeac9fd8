#include "step_context.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace finch::backend::cpu {
namespace {

/// Returns log Σ exp(row), computed relative to the largest entry so that nothing overflows.
double log_sum_exp(std::span<const float> row, float largest) {
    double sum = 0;
    for (const float logit : row) {
        sum += std::exp(static_cast<double>(logit) - largest);
    }
    return largest + std::log(sum);
}

/// Adds the loss of a sample with a label to `sums`. Writes the sample's gradient to `grad` unless `grad` is null.
/// Returns the predicted class.
std::int32_t add_label(std::span<const float> row, std::size_t label, std::span<const float> weights,
                       const StepScalars& scalars, float* grad, LossSums& sums) {
    const auto largest = std::max_element(row.begin(), row.end());
    const double total = log_sum_exp(row, *largest);
    const auto smoothing = static_cast<double>(scalars.label_smoothing);
    const double spread = smoothing / static_cast<double>(row.size());
    const auto weight = [&](std::size_t c) { return weights.empty() ? 1.0 : static_cast<double>(weights[c]); };
    // The loss is Σ target · (total − logit). Without class weights the sum of the targets is 1.
    double all = weights.empty() ? 1 : (1 - smoothing) * weight(label);
    double loss = -(1 - smoothing) * weight(label) * static_cast<double>(row[label]);
    for (std::size_t c = 0; smoothing > 0 && c < row.size(); ++c) {
        all += weights.empty() ? 0 : spread * weight(c);
        loss -= spread * weight(c) * static_cast<double>(row[c]);
    }
    const auto predicted = static_cast<std::size_t>(largest - row.begin());
    sums.loss += all * total + loss;
    sums.correct += predicted == label ? 1 : 0;
    sums.samples += 1;
    for (std::size_t c = 0; grad != nullptr && c < row.size(); ++c) {
        const double target = ((c == label ? 1 - smoothing : 0.0) + spread) * weight(c);
        const double share = all * std::exp(static_cast<double>(row[c]) - total) - target;
        grad[c] = static_cast<float>(share * static_cast<double>(scalars.grad_scale));
    }
    return static_cast<std::int32_t>(predicted);
}

/// Like add_label(), but for a sample with a regression target, which has no class.
void add_target(std::span<const float> row, const float* target, Regression kind, const StepScalars& scalars,
                float* grad, LossSums& sums) {
    const double share = 1 / static_cast<double>(row.size());
    double loss = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double difference = static_cast<double>(row[i]) - static_cast<double>(target[i]);
        const bool squared = kind == Regression::squared;
        loss += squared ? difference * difference : std::abs(difference);
        if (grad != nullptr) {
            const double slope = squared ? 2 * difference : static_cast<double>((difference > 0) - (difference < 0));
            grad[i] = static_cast<float>(slope * share * static_cast<double>(scalars.grad_scale));
        }
    }
    sums.loss += loss * share;
    sums.samples += 1;
}

}  // namespace

CpuStepContext::CpuStepContext(std::shared_ptr<const Images> images, std::int64_t batch)
    : images_(std::move(images)), batch_(static_cast<std::size_t>(batch)) {}

CpuStepContext::CpuStepContext(Images images, std::int64_t batch)
    : CpuStepContext(std::make_shared<const Images>(std::move(images)), batch) {
    if (images_->store) {
        ring_.resize(pixels::Loader::ring_bytes(images_->bytes_per_image(), batch, images_->prefetch));
        loader_.emplace(images_->store, batch, images_->prefetch, ring_);
    }
}

void CpuStepContext::fill(std::span<const std::int64_t> indices, std::span<const StepScalars> steps) {
    samples_ = real_samples(indices, steps.size(), batch_, capacity());
    indices_.assign(indices.begin(), indices.end());
    steps_.assign(steps.begin(), steps.end());
    predictions_.resize(indices.size());
    begun_ = 0;
    if (loader_) {
        loader_->want(indices);
        loaded_ = 0;
    }
}

void CpuStepContext::announce(std::span<const std::int64_t> indices) {
    if (loader_) {
        loader_->announce(indices);
    }
}

std::unique_ptr<StepContext> CpuStepContext::block(std::int64_t first, std::int64_t rows) {
    take_images();
    std::unique_ptr<CpuStepContext> block(new CpuStepContext(images_, rows));
    const auto begin = static_cast<std::size_t>(first);
    const auto indices = batch_indices().subspan(begin, std::min(block->batch_, batch_ - begin));
    block->indices_.assign(indices.begin(), indices.end());
    block->indices_.resize(block->batch_, -1);
    block->samples_ = {std::clamp<std::int64_t>(samples() - first, 0, rows)};
    block->steps_ = {scalars()};
    block->steps_.front().first_sample += first;
    block->begun_ = 1;
    block->predicted_ = predicted_ + first;
    if (loader_) {
        block->brought_ = brought_.subspan(begin * images_->bytes_per_image());
    }
    return block;
}

/// Waits for the streamed images of the current step.
void CpuStepContext::take_images() {
    for (; loader_ && loaded_ < begun_; ++loaded_) {
        brought_ = loader_->next();
    }
}

void CpuStepContext::load_batch(float* out) {
    take_images();
    if (images_->float_pixels) {
        load_pixels<float>(out);
    } else {
        load_pixels<std::uint8_t>(out);
    }
}

template <class Pixel>
void CpuStepContext::load_pixels(float* out) const {
    const std::size_t channels = images_->mean.size();
    const auto size = static_cast<std::size_t>(images_->pixels_per_image);
    const std::int64_t first = scalars().first_sample;
    std::int64_t place = first;
    for (const std::int64_t index : batch_indices()) {
        const auto row = static_cast<std::size_t>(place - first);
        const auto* const image = reinterpret_cast<const Pixel*>(image_bytes(row, index));
        if (index < 0) {
            std::fill_n(out, size, 0.0F);
        } else if (images_->distortions.any()) {
            load_distorted(image, place, out);
        } else {
            for (std::size_t i = 0; i < size; ++i) {
                out[i] = normalised(image[i], channels == 1 ? 0 : i % channels);
            }
        }
        out += size;
        ++place;
    }
}

/// Returns the bytes of image `index`, which is in row `row` of the current batch.
const std::uint8_t* CpuStepContext::image_bytes(std::size_t row, std::int64_t index) const {
    const std::size_t size = images_->bytes_per_image();
    return images_->store ? brought_.data() + row * size
                          : images_->pixels.data() + static_cast<std::size_t>(std::max<std::int64_t>(0, index)) * size;
}

template <class Pixel>
void CpuStepContext::load_distorted(const Pixel* image, std::int64_t place, float* out) const {
    const Distortions& distortions = images_->distortions;
    const Distortion by = distortions.of({{scalars().random_key[0], scalars().random_key[1]}}, place);
    const std::size_t channels = images_->mean.size();
    for (std::int64_t row = 0; row < distortions.height; ++row) {
        for (std::int64_t column = 0; column < distortions.width; ++column, out += channels) {
            const PixelSource source = distortions.source(by, row, column);
            for (std::size_t c = 0; c < channels; ++c) {
                const auto value = [&](std::int64_t pixel) {
                    return value_of(image[static_cast<std::size_t>(pixel) * channels + c]);
                };
                float seen = 0;
                if (source.from == PixelFrom::image) {
                    seen = value(source.pixel);
                } else if (source.from == PixelFrom::turned) {
                    seen = distortions.turned(by, source.pixel, value);
                }
                out[c] = source.from == PixelFrom::cut ? 0.0F : normalised(seen, c);
            }
        }
    }
}

/// Calls add_sample(row of the batch, sample, gradient of the sample or null) for all samples that are not padding.
/// Sets the gradient of padding to 0.
template <class AddSample>
void CpuStepContext::each_sample(std::int64_t columns, float* grad, AddSample add_sample) {
    const auto width = static_cast<std::size_t>(columns);
    std::size_t row = 0;
    for (const std::int64_t index : batch_indices()) {
        float* const grad_row = grad == nullptr ? nullptr : grad + row * width;
        if (index >= 0) {
            add_sample(row, static_cast<std::size_t>(index), grad_row);
        } else if (grad_row != nullptr) {
            std::fill_n(grad_row, width, 0.0F);
        }
        ++row;
    }
}

void CpuStepContext::softmax_cross_entropy(const float* logits, std::int64_t classes, float* grad) {
    const auto columns = static_cast<std::size_t>(classes);
    each_sample(classes, grad, [&](std::size_t row, std::size_t sample, float* grad_row) {
        predicted_[row] =
            add_label({logits + row * columns, columns}, static_cast<std::size_t>(images_->labels[sample]),
                      images_->class_weights, scalars(), grad_row, sums_);
    });
}

void CpuStepContext::regression_loss(Regression kind, const float* predictions, std::int64_t outputs, float* grad) {
    const auto columns = static_cast<std::size_t>(outputs);
    each_sample(outputs, grad, [&](std::size_t row, std::size_t sample, float* grad_row) {
        add_target({predictions + row * columns, columns}, images_->targets.data() + sample * columns, kind, scalars(),
                   grad_row, sums_);
    });
}

}  // namespace finch::backend::cpu
