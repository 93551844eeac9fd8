#include "backend/trial.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::test;

// Tests of 3 x 3 convolutions with a stride of 1, for which the CPU backend has its own kernels.
// tests/backend/CMakeLists.txt runs them for each instruction set, and with small tiles only.
namespace {

/// Channels for planes and for vectors of channels, with each fused activation.
std::vector<std::pair<Activation, std::int64_t>> activations_and_channels() {
    std::vector<std::pair<Activation, std::int64_t>> pairs;
    for (const Activation activation : fused_activations()) {
        pairs.insert(pairs.end(), {{activation, 10}, {activation, 20}});
    }
    return pairs;
}

/// Compares an operation with the reference to the accuracy of its kernel, relative to the largest value of a tensor.
void check_accuracy(Device& device, const ConvolutionShape& shape) {
    Trial trial(device, shape, 1);
    const std::string kernel = trial.operation->implementation();
    CAPTURE(kernel);
    CAPTURE(shape.channels_in);
    CAPTURE(shape.channels_out);
    CAPTURE(shape.height);
    CAPTURE(shape.width);
    if (kernel.starts_with("finch:winograd_2x2") || kernel.starts_with("finch:planes")) {
        trial.most = 1e-6;
    } else if (kernel.starts_with("finch:winograd_4x4")) {
        trial.most = 3e-6;
    }
    trial.check_forward();
    trial.check_backward();
}

}  // namespace

TEST_CASE("3 x 3: 1 to 70 channels give the reference's output and gradients") {
    const auto device = make_device();
    for (std::int64_t channels = 1; channels <= 70; ++channels) {
        check_accuracy(*device, own_shape(1, 6, 15, channels, channels % 2 == 0 ? 10 : 17));
        check_accuracy(*device, own_shape(1, 7, 14, channels % 2 == 0 ? 17 : 10, channels));
    }
}

TEST_CASE("3 x 3: images of 4 to 64 pixels give the reference's output and gradients") {
    const auto device = make_device();
    for (const std::int64_t side : {4, 5, 6, 7, 8, 9, 12, 14, 15, 16, 28, 31, 33, 64})
        for (const auto& [in, out] : {std::pair{1, 4}, {5, 6}, {10, 10}, {16, 17}}) {
            check_accuracy(*device, own_shape(side < 20 ? 2 : 1, side, side, in, out));
        }
}

TEST_CASE("3 x 3: odd and even sizes and every padding give the reference's output and gradients") {
    const auto device = make_device();
    for (const std::int64_t height : {3, 4, 6, 9})
        for (const std::int64_t width : {28, 29, 33, 35, 66})
            for (const auto& [before, after] : {std::pair{0, 0}, {1, 1}, {0, 2}, {2, 1}, {2, 2}, {3, 0}}) {
                CAPTURE(height);
                CAPTURE(width);
                CAPTURE(before);
                CAPTURE(after);
                ConvolutionShape shape = own_shape(2, height, width, 5, 6);
                shape.padding_before = before;
                shape.padding_after = after;
                check(*device, shape);
            }
}

TEST_CASE("3 x 3: small images with many channels (images share tiles) give the reference's output and gradients") {
    const auto device = make_device();
    for (const std::int64_t batch : {1, 2, 3, 5})
        for (const auto& [side, in, out] :
             {std::tuple{8, 56, 60}, {8, 64, 67}, {14, 32, 33}, {17, 30, 27}, {20, 24, 23}}) {
            CAPTURE(batch);
            CAPTURE(side);
            CAPTURE(in);
            check(*device, own_shape(batch, side, side, in, out));
        }
}

TEST_CASE("3 x 3: repeated runs give the same bits for every activation; outputs do not depend on the threads") {
    for (const auto& [activation, channels] : activations_and_channels()) {
        CAPTURE(static_cast<int>(activation));
        CAPTURE(channels);
        ConvolutionShape shape = own_shape(7, 14, 30, channels, channels);
        shape.activation = activation;
        std::vector<std::vector<float>> outputs, gradients;
        for (const int threads : {1, 3, 3}) {
            const auto device = make_cpu_device(threads);
            Trial trial(*device, shape, 3);
            trial.check_forward();
            trial.check_backward();
            outputs.push_back(from_device(*device, trial.device_y));
            const Buffer grad_y = on_device(*device, Tensor(trial.expected.size(), 0.5));
            const Buffer grad_x = device->allocate(trial.x.size());
            const Buffer grad_parameters = device->allocate(trial.parameters.size());
            backward(*device, *trial.operation, trial.device_x, trial.device_y, grad_y, grad_x, grad_parameters);
            gradients.push_back(from_device(*device, grad_x));
            const std::vector<float> sums = from_device(*device, grad_parameters);
            gradients.back().insert(gradients.back().end(), sums.begin(), sums.end());
        }
        CHECK(outputs[1] == outputs[2]);
        CHECK(gradients[1] == gradients[2]);
        // The parameters' gradients may differ between 1 and 3 threads: the order of the sums over samples depends on
        // the number of threads.
        const auto size = static_cast<std::ptrdiff_t>(shape.batch * shape.height * shape.width * channels);
        CHECK(outputs[0] == outputs[1]);
        CHECK(std::vector(gradients[0].begin(), gradients[0].begin() + size) ==
              std::vector(gradients[1].begin(), gradients[1].begin() + size));
    }
}

TEST_CASE("3 x 3: NaN propagates through relu, but not from one sample to another") {
    const auto device = make_cpu_device(1);
    const ConvolutionShape shape = own_shape(3, 8, 8, 64, 64);
    Trial trial(*device, shape, 4);
    const std::size_t sample = trial.x.size() / 3;
    trial.x[sample + 5 * 64] = std::numeric_limits<double>::quiet_NaN();
    trial.device_x = on_device(*device, trial.x);

    forward(*device, *trial.operation, trial.device_x, trial.device_y);

    const std::vector<float> y = from_device(*device, trial.device_y);
    for (std::size_t i = 0; i < y.size(); ++i) {
        const bool is_of_second = i / sample == 1;
        if (!is_of_second) {
            REQUIRE(y[i] == y[i]);
        }
    }
    CHECK(y[sample + 5 * 64] != y[sample + 5 * 64]);
}
