// Tests of all variants of the direct convolution kernels, on odd shapes.
#include "finch/backend/cuda.hpp"

#include "backend/trial.hpp"
#include "cuda/on_a_gpu.hpp"
#include "support/rehearsal/fibers.hpp"

#include <array>
#include <doctest/doctest.h>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::test;

namespace {

void check_direct(Device& device, const ConvolutionShape& shape) {
    CAPTURE(shape.batch);
    CAPTURE(shape.height);
    CAPTURE(shape.width);
    CAPTURE(shape.channels_in);
    CAPTURE(shape.channels_out);
    CAPTURE(shape.kernel);
    CAPTURE(shape.padding_before);
    CHECK(device.make(shape)->implementation().find("finch:direct") == 0);
    check(device, shape);
}

}  // namespace

TEST_CASE("one to sixteen channels, in and out, give the reference's results with every kernel") {
    const auto device = make_device();
    for (const std::int64_t kernel : {3, 5})
        for (const auto& [in, out] : {std::pair{1, 1},
                                      {1, 10},
                                      {2, 5},
                                      {3, 16},
                                      {5, 3},
                                      {8, 8},
                                      {10, 10},
                                      {11, 9},
                                      {16, 15},
                                      {16, 16},
                                      {15, 4}}) {
            check_direct(*device, {.batch = 3,
                                   .height = 7,
                                   .width = 9,
                                   .channels_in = in,
                                   .channels_out = out,
                                   .kernel = kernel,
                                   .padding_before = kernel / 2,
                                   .padding_after = kernel / 2,
                                   .activation = Activation::relu});
        }
}

TEST_CASE(
    "images of one row, one column and odd sizes give the reference's results with all paddings and activations") {
    const auto device = make_device();
    const Activation activations[] = {Activation::none, Activation::relu, Activation::sigmoid, Activation::tanh};
    int number = 0;
    for (const auto& [height, width] : {std::pair{1, 13}, {13, 1}, {5, 5}, {9, 33}, {30, 17}})
        for (const auto& [before, after] : {std::pair{0, 0}, {1, 1}, {2, 2}, {0, 2}, {2, 1}}) {
            const std::int64_t kernel = 3;
            if (height + before + after < kernel || width + before + after < kernel) {
                continue;
            }
            check_direct(*device, {.batch = 1 + number % 4,
                                   .height = height,
                                   .width = width,
                                   .channels_in = 4,
                                   .channels_out = 10,
                                   .kernel = kernel,
                                   .padding_before = before,
                                   .padding_after = after,
                                   .activation = activations[number % 4],
                                   .needs_input_grad = number % 3 != 0});
            ++number;
        }
}

TEST_CASE("every kernel that computes four pixels of a row is right, in forward and for the input's gradient") {
    const auto device = make_device();
    const std::tuple few{11, 61, 63};   // 32 768 pixels and more; 36 740 on 148 multiprocessors
    const std::tuple many{34, 66, 67};  // 131 072 and more; 146 960 on 148
    for (const std::int64_t kernel : {3, 5})
        for (const auto& [sizes, in, out, outputs] : {std::tuple{few, 3, 10, "5"},
                                                      {few, 10, 3, "4"},
                                                      {many, 1, 10, "10"},
                                                      {many, 10, 1, "4"},
                                                      {many, 1, 7, "8"},
                                                      {many, 7, 1, "4"},
                                                      {many, 1, 5, "5"},
                                                      {many, 5, 1, "4"}}) {
            const auto& [batch, height, width] = sizes;
            const ConvolutionShape shape{.batch = batch,
                                         .height = height,
                                         .width = width,
                                         .channels_in = in,
                                         .channels_out = out,
                                         .kernel = kernel,
                                         .padding_before = kernel / 2,
                                         .padding_after = kernel / 2,
                                         .activation = Activation::tanh};
            CHECK(device->make(shape)->implementation() ==
                  std::string("finch:direct, 4 pixels x ") + outputs + " channels");
            check_direct(*device, shape);
        }
}

TEST_CASE("28 x 28 pixels: results are right for batches around both pixel counts at which the kernel changes") {
    const auto device = make_device();
    std::vector<std::int64_t> batches{8, 64, 168};  // 6 272, 50 176 and 131 712 pixels
    std::vector<std::pair<int, int>> channels{{1, 10}, {10, 10}, {5, 5}, {8, 8}, {4, 4}, {16, 16}, {7, 3}};
    if (!on_a_gpu()) {  // would take an hour on the stand-ins
        batches = {42};
        channels = {{1, 4}};
    }
    for (const std::int64_t batch : batches)
        for (const std::int64_t kernel : {3, 5})
            for (const auto& [in, out] : channels) {
                if (kernel == 5 && batch == 168 && in * out > 25) {
                    continue;  // the reference would take minutes; smaller cases test these kernels
                }
                check_direct(*device, {.batch = batch,
                                       .height = 28,
                                       .width = 28,
                                       .channels_in = in,
                                       .channels_out = out,
                                       .kernel = kernel,
                                       .padding_before = kernel / 2,
                                       .padding_after = kernel / 2,
                                       .activation = Activation::tanh});
            }
}

TEST_CASE("bands: more bands of rows than thread blocks, or fewer rows than a band, give the reference's results") {
    const auto device = make_device();
    for (const auto& [batch, size, in, out] : {std::tuple{600, 8, 4, 16}, {33, 64, 2, 8}}) {
        check_direct(*device, {.batch = batch,
                               .height = size,
                               .width = size,
                               .channels_in = in,
                               .channels_out = out,
                               .kernel = 3,
                               .padding_before = 1,
                               .padding_after = 1,
                               .activation = Activation::tanh});
    }
}

TEST_CASE("a kernel of 5 gives the reference's results with every padding that is narrower than the kernel") {
    const auto device = make_device();
    for (const auto& [before, after] : {std::pair{0, 0}, {4, 4}, {0, 4}, {4, 0}, {1, 3}})
        for (const auto& [batch, height, width] : {std::tuple{2, 6, 7}, {130, 17, 18}}) {
            check_direct(*device, {.batch = batch,
                                   .height = height,
                                   .width = width,
                                   .channels_in = 2,
                                   .channels_out = 3,
                                   .kernel = 5,
                                   .padding_before = before,
                                   .padding_after = after,
                                   .activation = Activation::sigmoid});
        }
}

TEST_CASE("an input's gradient that needs more threads than the weights' gradient is right") {
    const auto device = make_device();
    check_direct(*device, {.batch = 2,
                           .height = 8,
                           .width = 32,
                           .channels_in = 14,  // 256 and 224 threads
                           .channels_out = 3,
                           .kernel = 5,
                           .padding_before = 2,
                           .padding_after = 2,
                           .activation = Activation::tanh});
}

TEST_CASE_TEMPLATE(
    "finish_deferred: completes the gradients of more layers than one kernel takes, without deleted operations", Path,
    std::integral_constant<CudaPath, CudaPath::direct>, std::integral_constant<CudaPath, CudaPath::library>) {
    const auto device = make_cuda_device(0, Path::value);
    std::vector<std::unique_ptr<Trial<ConvolutionShape>>> trials;
    std::vector<Buffer> grad_y, grad_x, grads;
    std::vector<std::vector<float>> expected;
    for (std::int64_t i = 0; i < 19; ++i) {
        trials.push_back(std::make_unique<Trial<ConvolutionShape>>(*device,
                                                                   ConvolutionShape{.batch = 2,
                                                                                    .height = 5,
                                                                                    .width = 6,
                                                                                    .channels_in = 1 + i % 16,
                                                                                    .channels_out = 1 + 5 * i % 16,
                                                                                    .kernel = 3,
                                                                                    .padding_before = 1,
                                                                                    .padding_after = 1},
                                                                   static_cast<std::uint64_t>(i)));
        Trial<ConvolutionShape>& trial = *trials.back();
        grad_y.push_back(on_device(*device, normal_tensor(trial.random, trial.expected.size())));
        grad_x.push_back(device->allocate(trial.x.size()));
        grads.push_back(device->allocate(trial.parameters.size()));
        backward(*device, *trial.operation, trial.device_x, trial.device_y, grad_y.back(), grad_x.back(), grads.back());
        expected.push_back(from_device(*device, grads.back()));
        device->clear(grads.back().data(), grads.back().size());
    }
    TrialStep step(*device);
    constexpr std::size_t deleted = 2;

    for (std::size_t i = 0; i < trials.size(); ++i) {
        const float* const x = trials[i]->device_x.data();
        float* const to = grad_x[i].data();
        trials[i]->operation->backward(step.pass(), std::span(&x, 1), trials[i]->device_y.data(), grad_y[i].data(),
                                       std::span(&to, 1), grads[i].data());
    }
    trials[deleted]->operation.reset();
    device->finish_deferred();

    expected[deleted].assign(expected[deleted].size(), 0.0F);
    for (std::size_t i = 0; i < trials.size(); ++i) {
        CAPTURE(i);
        CHECK(from_device(*device, grads[i]) == expected[i]);
    }
}

TEST_CASE("repeated runs give the same bits for every thread order: no barrier is missing") {
    const auto device = make_device();
    for (const auto& [batch, size] : {std::pair{3, 12}, {40, 30}}) {
        const ConvolutionShape shape{.batch = batch,
                                     .height = size,
                                     .width = size,
                                     .channels_in = 3,
                                     .channels_out = 10,
                                     .kernel = 3,
                                     .padding_before = 1,
                                     .padding_after = 1,
                                     .activation = Activation::relu};
        Trial<ConvolutionShape> trial(*device, shape, 1);
        const Tensor grad_y = normal_tensor(trial.random, trial.expected.size());
        const auto results = [&](rehearsal::ThreadOrder order) {
            rehearsal::set_thread_order(order);
            const Buffer device_grad_y = on_device(*device, grad_y);
            const Buffer grad_x = device->allocate(trial.x.size());
            const Buffer grad_parameters = device->allocate(trial.parameters.size());
            forward(trial.device, *trial.operation, trial.device_x, trial.device_y);
            backward(trial.device, *trial.operation, trial.device_x, trial.device_y, device_grad_y, grad_x,
                     grad_parameters);
            rehearsal::set_thread_order(rehearsal::ThreadOrder::forward);
            return std::array{from_device(*device, trial.device_y), from_device(*device, grad_x),
                              from_device(*device, grad_parameters)};
        };

        const auto first = results(rehearsal::ThreadOrder::forward);

        CHECK(results(rehearsal::ThreadOrder::backward) == first);
        CHECK(results(rehearsal::ThreadOrder::interleaved) == first);
    }
}

TEST_CASE("shapes that the direct kernels do not support use the libraries") {
    const auto device = make_device();
    const ConvolutionShape suits{.batch = 2, .height = 8, .width = 8, .channels_in = 4, .channels_out = 4, .kernel = 3};
    const auto is_direct = [&](const ConvolutionShape& shape) {
        return device->make(shape)->implementation().find("finch:direct") == 0;
    };
    CHECK(is_direct(suits));
    ConvolutionShape shape = suits;
    shape.stride = 2;
    CHECK(!is_direct(shape));
    shape = suits;
    shape.kernel = 2;
    CHECK(!is_direct(shape));
    shape = suits;
    shape.channels_out = 17;
    CHECK(!is_direct(shape));
    shape = suits;
    shape.width = 512;
    CHECK(is_direct(shape));
    shape.width = 514;  // a row has more pairs of pixels than a block has threads
    CHECK(!is_direct(shape));
    shape = suits;
    shape.height = 32'768;  // batch · height² is 2³¹
    CHECK(!is_direct(shape));
    shape = suits;
    shape.width = 20'000;  // a row of 16 channels exceeds shared memory
    shape.channels_in = 16;
    CHECK(!is_direct(shape));
}
