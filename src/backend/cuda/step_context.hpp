#pragma once

#include "finch/backend/device.hpp"

#include "resident_images.hpp"
#include "step_row.hpp"
#include "stream.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace finch::backend::cuda {

/// A StepContext with its steps in device memory. The images are also in device memory, stored once for all users of
/// the data set. If the images do not fit, or are in files, each fill() copies the images of its steps.
class CudaStepContext : public StepContext {
public:
    /// `stream` must outlive this object. Throws std::bad_alloc.
    CudaStepContext(Stream& stream, const Images& images, std::int64_t batch);
    ~CudaStepContext() override;

    [[nodiscard]] std::int64_t capacity() const override { return capacity_; }
    void fill(std::span<const std::int64_t> indices, std::span<const StepScalars> steps) override;
    void announce(std::span<const std::int64_t> indices) override;
    [[nodiscard]] LossSums sums() const override;
    void set_sums(const LossSums& sums) override;
    [[nodiscard]] std::vector<std::int32_t> predictions() const override;
    [[nodiscard]] LossScale loss_scale() const override;
    void set_loss_scale(const LossScale& scale) override;

    [[nodiscard]] const StepView& view() const noexcept { return view_; }

private:
    [[nodiscard]] static std::int64_t steps_that_fit(const Images& images, std::int64_t batch);
    void allocate_steps();
    void bring_constants();
    template <class Part>
    [[nodiscard]] Part read(const Part& part) const;
    template <class Part>
    void write(const Part& value, Part& part) const;
    void allocate_staging();
    void bring_images(std::span<const std::int64_t> indices, std::span<std::int64_t> positions);
    void gather_pixels(std::span<const std::int64_t> indices);
    void load_pixels(std::span<const std::int64_t> indices);

    Stream& stream_;
    Images images_;
    std::shared_ptr<const ResidentImages> resident_;  ///< null: each fill() copies images
    std::int64_t capacity_;
    std::size_t batch_;
    StepView view_;

    StreamMemory constants_;  ///< mean, deviation, class weights
    StreamMemory state_;
    StreamMemory steps_;        ///< rows, then indices
    StreamMemory predictions_;  ///< (steps, batch)
    std::size_t filled_ = 0;    ///< number of indices of the last fill()
    PinnedPiece host_steps_;    ///< the host copy of steps_
    PinnedPiece host_state_;    ///< for reads and writes of state_
    StreamMemory brought_;      ///< pixels, then answers, of one fill(), if the images are not resident
    PinnedPiece host_answers_;  ///< answers of one fill()

    struct Staging {
        PinnedPiece pixels;
        UniqueEvent copied;
    };
    std::array<Staging, 2> staging_;  ///< for images in host memory: one is copied while the other is filled

    PinnedPiece ring_;                             ///< memory of the loader
    std::optional<finch::pixels::Loader> loader_;  ///< only for images in files
    UniqueEvent copied_;                           ///< recorded after the copy of the last loaded batch
};

[[nodiscard]] inline CudaStepContext& own(StepContext& step) {
    return dynamic_cast<CudaStepContext&>(step);
}

}  // namespace finch::backend::cuda
