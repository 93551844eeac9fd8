#include "finch/backend/cuda_runtime.hpp"
#include "finch/backend/operation.hpp"

#include "direct_plan.hpp"
#include "operations.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

namespace finch::backend::cuda {

using namespace direct;

namespace {

class DirectConvolutionOperation : public Operation {
public:
    DirectConvolutionOperation(Stream& stream, const ConvolutionShape& shape)
        : stream_(stream),
          forward_(plan_direct(stream.facts(), forward_sizes(shape), shape, false)),
          backward_(plan_backward(shape, stream.facts())),
          partial_(stream.allocate(backward_.partial_bytes())) {
        if (shape.needs_input_grad && !backward_.has_input_grad) {
            gradient_ = plan_direct(stream.facts(), gradient_sizes(shape), shape, true);
        }
    }

    ~DirectConvolutionOperation() override { stream_.deferred().forget(partial()); }
    DirectConvolutionOperation(const DirectConvolutionOperation&) = delete;
    DirectConvolutionOperation& operator=(const DirectConvolutionOperation&) = delete;

    void pack(const float* parameters, float* /*buffers*/) override { parameters_ = parameters; }
    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        forward_.run(stream_.get(), {.parameters = parameters_, .x = x[0], .to = y});
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        const Tensors tensors{
            .parameters = parameters_, .x = x[0], .y = y, .grad_y = grad_y, .to = grad_x[0], .partial = partial()};
        backward_.pass.run(stream_.get(), tensors);
        if (gradient_) {
            gradient_->run(stream_.get(), tensors);
        }
        stream_.deferred().sums.push_back(
            {.partial = partial(), .rows = backward_.rows, .count = backward_.count, .sums = grad_parameters});
    }
    [[nodiscard]] bool defers_grads() const override { return true; }
    [[nodiscard]] std::string implementation() const override { return forward_.name; }

private:
    [[nodiscard]] float* partial() const { return static_cast<float*>(partial_.get()); }

    Stream& stream_;
    DirectPass forward_;
    BackwardPass backward_;
    std::optional<DirectPass> gradient_;  ///< if an input gradient is needed that backward_ does not compute
    StreamMemory partial_;                ///< used until finish_deferred()
    const float* parameters_ = nullptr;   ///< canonical; kernels read them in place
};

}  // namespace

bool direct_suits(const DeviceFacts& facts, const ConvolutionShape& shape) {
    const bool kernel_fits = shape.kernel == 3 || shape.kernel == 5;
    if (!kernel_fits || shape.stride != 1 || shape.dilation != 1 || shape.groups != 1 ||
        shape.channels_in > most_channels || shape.channels_out > most_channels ||
        shape.padding_before >= shape.kernel || shape.padding_after >= shape.kernel ||
        pixels_out(shape) > (std::int64_t{1} << 30)) {
        return false;
    }
    const std::int64_t height = std::max(shape.height, shape.height_out());
    if (shape.batch * height * height >= std::int64_t{1} << 31) {  // the kernels divide the number of a band by Divisor
        return false;
    }
    const DirectPass forward = plan_direct(facts, forward_sizes(shape), shape, false);
    const DirectPass gradient = plan_direct(facts, gradient_sizes(shape), shape, true);
    return std::max(forward.items, gradient.items) <= most_threads &&
           std::max({forward.shared_bytes, gradient.shared_bytes, plan_backward(shape, facts).pass.shared_bytes}) <=
               facts.shared_bytes_most;
}

OperationBytes direct_bytes(Stream& stream, const ConvolutionShape& shape) {
    return {.kept = plan_backward(shape, stream.facts()).partial_bytes()};
}

std::unique_ptr<Operation> make_direct(Stream& stream, const ConvolutionShape& shape) {
    return std::make_unique<DirectConvolutionOperation>(stream, shape);
}

}  // namespace finch::backend::cuda
