#pragma once

#include "finch/backend/device.hpp"

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

namespace finch::test {

/// Ten different images of six pixels, and their labels.
struct Data {
    std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(60);
    std::vector<std::int32_t> labels{0, 1, 2, 0, 1, 2, 0, 1, 2, 0};
    Data() { std::iota(pixels.begin(), pixels.end(), std::uint8_t{1}); }
    [[nodiscard]] backend::Images images() const { return {.pixels = pixels, .labels = labels, .pixels_per_image = 6}; }
};

/// A step that uses all data of a step context. It loads a batch of one image, and computes the loss with the image's
/// first three pixels as logits.
class Step {
public:
    explicit Step(backend::Device& device, const Data& data, backend::CaptureAs how = backend::CaptureAs::graph)
        : device_(device),
          context_(device.make_step_context(data.images(), 1)),
          pixels_(device.allocate(6)),
          step_(device.capture(
              [this] {
                  device_.next_step(*context_);
                  device_.load_batch(*context_, pixels_.data());
                  device_.softmax_cross_entropy(*context_, pixels_.data(), 3, nullptr);
              },
              how)) {}

    void fill(std::int64_t steps) {
        std::vector<std::int64_t> indices(static_cast<std::size_t>(steps));
        for (std::int64_t& index : indices) {
            index = next_++ % 10;
        }
        context_->fill(indices, std::vector<backend::StepScalars>(indices.size()));
    }
    void run(std::int64_t steps) {
        fill(steps);
        step_->run(steps);
        device_.synchronize();
    }
    [[nodiscard]] backend::LossSums sums() const { return context_->sums(); }

private:
    backend::Device& device_;
    std::unique_ptr<backend::StepContext> context_;
    backend::Buffer pixels_;
    std::unique_ptr<backend::CapturedStep> step_;
    std::int64_t next_ = 0;
};

inline bool same(const backend::LossSums& a, const backend::LossSums& b) {
    return a.loss == b.loss && a.correct == b.correct && a.samples == b.samples;
}

}  // namespace finch::test
