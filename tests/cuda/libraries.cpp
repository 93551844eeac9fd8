#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// What is made of cuDNN and cuBLASLt: each rung of the ladder, on their stand-ins.
#include "finch/backend/cuda.hpp"

#include "backend/trial.hpp"
#include "support/rehearsal/control.hpp"
#include "support/rehearsal/engines.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <string>

using namespace finch;
using namespace finch::test;
using namespace finch::backend::cuda;

std::unique_ptr<backend::Device> finch::test::make_device() {
    return backend::make_cuda_device(0, backend::CudaPath::library);
}

namespace {

constexpr ConvolutionShape odd{.batch = 3,
                               .height = 7,
                               .width = 6,
                               .channels_in = 3,
                               .channels_out = 10,
                               .kernel = 3,
                               .stride = 2,
                               .padding_before = 1,
                               .padding_after = 2,
                               .activation = Activation::sigmoid};

/// Checks all passes where cuDNN has engines only for some requests, and that its part begins with `name`.
void check_rung(const ConvolutionShape& shape, const std::string& name,
                std::function<bool(const CudnnRequest&)> offered) {
    rehearsal::offer_engines(std::move(offered));
    const auto device = make_device();
    const std::string implementation = device->convolution(shape)->implementation();
    CAPTURE(implementation);
    CHECK(implementation.find(name) == 0);
    check(*device, shape);
    rehearsal::offer_engines([](const CudnnRequest&) { return true; });
}

}  // namespace

TEST_CASE("the first rung: NHWC as it is, bias and activation fused") {
    check_rung(odd, "cudnn:nhwc float32, fused", [](const CudnnRequest&) { return true; });
}

TEST_CASE("where nothing fuses, bias and activation follow") {
    check_rung(odd, "cudnn:nhwc float32 (", [](const CudnnRequest& request) { return !request.is_fused; });
}

TEST_CASE("where NHWC as it is has no engine, channels are padded, fused or not") {
    const auto is_padded = [](const CudnnRequest& request) { return request.shape.channels_in % 4 == 0; };
    check_rung(odd, "cudnn:nhwc float32, channels 4->12, fused", is_padded);
    check_rung(odd, "cudnn:nhwc float32, channels 4->12 (",
               [&](const CudnnRequest& request) { return is_padded(request) && !request.is_fused; });
}

TEST_CASE("where only planes have an engine, activations are transposed") {
    check_rung(odd, "cudnn:nchw float32 (",
               [](const CudnnRequest& request) { return request.layout == TensorLayout::nchw; });
}

TEST_CASE("where cuDNN has nothing, the general kernels serve") {
    check_rung(odd, "finch:general", [](const CudnnRequest&) { return false; });
}

TEST_CASE("passes climb the ladder each by itself") {
    for (const ConvolutionPass alone :
         {ConvolutionPass::forward, ConvolutionPass::data_gradient, ConvolutionPass::weight_gradient}) {
        rehearsal::offer_engines([alone](const CudnnRequest& request) { return request.pass == alone; });
        const auto device = make_device();
        check(*device, odd);
    }
    rehearsal::offer_engines([](const CudnnRequest&) { return true; });
}

TEST_CASE("wide channels, and one pixel of output") {
    const auto device = make_device();
    check(*device, ConvolutionShape{.batch = 2,
                                    .height = 5,
                                    .width = 5,
                                    .channels_in = 33,
                                    .channels_out = 48,
                                    .kernel = 3,
                                    .padding_before = 1,
                                    .padding_after = 1});
    check(*device, ConvolutionShape{.batch = 5,
                                    .height = 7,
                                    .width = 7,
                                    .channels_in = 2,
                                    .channels_out = 3,
                                    .kernel = 7,
                                    .activation = Activation::tanh});
}

TEST_CASE("bfloat16: channels are padded to 8, and results are float32's to the rounding of its mantissa") {
    ConvolutionShape shape = odd;
    shape.precision = Precision::bfloat16;
    const auto device = make_device();
    Trial<ConvolutionShape> trial(*device, shape, 1);
    CHECK(trial.operation->implementation().find("cudnn:nhwc bfloat16, channels 8->16, fused") == 0);

    trial.operation->forward(trial.device_x.data(), trial.device_y.data());

    CHECK(difference(from_device(*device, trial.device_y), trial.expected) < 2e-2);
    CHECK(difference(from_device(*device, trial.device_y), trial.expected) > 1e-5);  // it was bfloat16 indeed
    const std::vector<float> outputs = from_device(*device, trial.device_y);
    const Tensor grad_y = normal_tensor(trial.random, outputs.size());
    const auto gradients =
        reference::backward(shape, trial.x, trial.parameters, Tensor(outputs.begin(), outputs.end()), grad_y);
    const Buffer device_grad_y = on_device(*device, grad_y);
    const Buffer grad_x = device->allocate(trial.x.size());
    const Buffer grad_parameters = device->allocate(trial.parameters.size());
    trial.operation->backward(trial.device_x.data(), trial.device_y.data(), device_grad_y.data(), grad_x.data(),
                              grad_parameters.data());
    CHECK(difference(from_device(*device, grad_x), gradients.x) < 2e-2);
    CHECK(difference(from_device(*device, grad_parameters), gradients.parameters) < 2e-2);
}

TEST_CASE("a shape is planned once for all operations of a device, whatever their stream") {
    const auto device = make_device();
    const auto beside = device->new_stream();
    const int before = rehearsal::plans_made();

    const auto first = device->convolution(odd);
    const auto second = device->convolution(odd);
    const auto third = beside->convolution(odd);

    CHECK(rehearsal::plans_made() == before + 3);
}

TEST_CASE("a linear layer without an algorithm in cuBLASLt is computed by the general kernels") {
    rehearsal::offer_products(false);
    const auto device = make_device();
    check(*device,
          LinearShape{.batch = 3, .height = 4, .width = 5, .channels = 3, .units = 7, .activation = Activation::relu});
    rehearsal::offer_products(true);
}
