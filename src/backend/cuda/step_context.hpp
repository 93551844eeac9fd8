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

namespace finch::backend::cuda {

/// Steps that lie in the device's memory. The images lie there too, once for all who use the data set; where they do
/// not fit, or are in files, each fill() brings those of its steps.
class CudaStepContext : public StepContext {
public:
    /// `stream` must outlive it. Throws std::bad_alloc.
    CudaStepContext(Stream& stream, const Images& images, std::int64_t batch);
    ~CudaStepContext() override;

    [[nodiscard]] std::int64_t capacity() const override { return capacity_; }
    void fill(std::span<const std::int64_t> indices, std::span<const StepScalars> steps) override;
    void announce(std::span<const std::int64_t> indices) override;
    [[nodiscard]] LossSums sums() const override;
    void set_sums(const LossSums& sums) override;
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
    std::shared_ptr<const ResidentImages> resident_;  ///< null: each fill() brings images
    std::int64_t capacity_;
    std::size_t batch_;
    StepView view_;

    StreamMemory constants_;  ///< mean, deviation, class weights
    StreamMemory state_;
    StreamMemory steps_;        ///< rows, then indices
    PinnedPiece host_steps_;    ///< the same on the host
    PinnedPiece host_state_;    ///< for what is read and written of it
    StreamMemory brought_;      ///< pixels, then answers, of one fill(), if they are not resident
    PinnedPiece host_answers_;  ///< of them

    struct Staging {
        PinnedPiece pixels;
        UniqueEvent copied;
    };
    std::array<Staging, 2> staging_;  ///< of images in host memory: one is copied from while the other is filled

    PinnedPiece ring_;                             ///< the loader's
    std::optional<finch::pixels::Loader> loader_;  ///< of images in files
    UniqueEvent copied_;                           ///< what the loader brought last
};

[[nodiscard]] inline CudaStepContext& own(StepContext& step) {
    return dynamic_cast<CudaStepContext&>(step);
}

}  // namespace finch::backend::cuda
