#pragma once

#include "finch/backend/device.hpp"

#include "feed_row.hpp"
#include "resident_images.hpp"
#include "stream.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace finch::backend::cuda {

/// A feed whose steps lie in the device's memory. The images lie there too, once for all feeds of the data set; where
/// they do not fit, each fill() brings those of its steps.
class CudaFeed : public Feed {
public:
    /// `stream` must outlive it. Throws std::bad_alloc.
    CudaFeed(Stream& stream, const Images& images, std::int64_t batch);
    ~CudaFeed() override;

    [[nodiscard]] std::int64_t capacity() const override { return capacity_; }
    void fill(std::span<const std::int64_t> indices, std::span<const StepNumbers> steps) override;
    [[nodiscard]] LossSums sums() const override;
    void set_sums(const LossSums& sums) override;

    [[nodiscard]] const FeedView& view() const noexcept { return view_; }
    /// Of the steps that were filled in last.
    [[nodiscard]] OptimizerKind optimizer() const noexcept { return optimizer_; }

private:
    [[nodiscard]] static std::int64_t steps_that_fit(const Images& images, std::int64_t batch);
    void allocate_steps();
    void allocate_staging();
    void bring_images(std::span<const std::int64_t> indices, std::span<std::int64_t> positions);

    Stream& stream_;
    Images images_;
    std::shared_ptr<const ResidentImages> resident_;  ///< null: streamed
    std::int64_t capacity_;
    std::size_t batch_;
    OptimizerKind optimizer_ = OptimizerKind::sgd;
    FeedView view_;

    StreamMemory normalisation_;  ///< mean, then deviation
    StreamMemory state_;
    StreamMemory steps_;       ///< rows, then indices
    PinnedPiece host_steps_;   ///< the same on the host
    PinnedPiece host_state_;   ///< for sums()
    StreamMemory brought_;     ///< streamed: pixels, then labels, of one fill()
    PinnedPiece host_labels_;  ///< streamed

    struct Staging {
        PinnedPiece pixels;
        UniqueEvent copied;
    };
    std::array<Staging, 2> staging_;  ///< streamed: one is copied from while the other is filled
};

}  // namespace finch::backend::cuda
