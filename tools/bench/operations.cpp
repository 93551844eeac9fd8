// Compares float32 with bfloat16 for convolutions and linear layers, on one thread of a CPU. Prints the smallest
// processor time of a forward and a backward pass in 20 turns, in µs, and the implementation of each operation.
//
//   ninja -C build bench_operations && OMP_NUM_THREADS=1 build/bench_operations
#include "finch/backend/device.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace finch::backend;

std::size_t inputs(const ConvolutionShape& s) {
    return static_cast<std::size_t>(s.batch * s.height * s.width * s.channels_in);
}
std::size_t inputs(const LinearShape& s) {
    return static_cast<std::size_t>(s.batch * s.height * s.width * s.channels);
}
std::size_t outputs(const ConvolutionShape& s) {
    return static_cast<std::size_t>(s.batch * s.height_out() * s.width_out() * s.channels_out);
}
std::size_t outputs(const LinearShape& s) {
    return static_cast<std::size_t>(s.batch * s.units);
}
std::size_t parameters(const ConvolutionShape& s) {
    return static_cast<std::size_t>(s.weights() + s.channels_out);
}
std::size_t parameters(const LinearShape& s) {
    return static_cast<std::size_t>(s.units * (s.height * s.width * s.channels + 1));
}

double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Returns the time of one forward and backward pass in µs, and the name of the implementation.
template <class Shape>
std::pair<double, std::string> measure(Device& device, Shape shape, Precision precision) {
    shape.precision = precision;
    const auto operation = device.make(shape);
    const auto filled = [&device](std::size_t count) {
        Buffer buffer = device.allocate(count);
        for (std::size_t i = 0; i < count; ++i) {
            buffer.span()[i] = 0.01F * static_cast<float>(i % 97) - 0.4F;
        }
        return buffer;
    };
    const Buffer x = filled(inputs(shape));
    const Buffer weights = filled(parameters(shape));
    const Buffer y = filled(outputs(shape));
    const Buffer grad_x = filled(x.size());
    const Buffer grad_weights = filled(weights.size());
    const std::vector<std::uint8_t> pixel(1);
    const std::vector<std::int32_t> label(1);
    const auto step = device.make_step_context({.pixels = pixel, .labels = label, .pixels_per_image = 1}, 1);
    const Pass pass{.step = *step};
    operation->pack(weights.data(), nullptr);
    const float* const in[] = {x.data()};
    float* const out[] = {grad_x.data()};
    double least = std::numeric_limits<double>::max();
    for (int turn = 0; turn < 20; ++turn) {
        const Buffer grad_y = filled(y.size());
        const double begin = processor_seconds();
        operation->forward(pass, in, y.data());
        operation->backward(pass, in, y.data(), grad_y.data(), out, grad_weights.data());
        least = std::min(least, processor_seconds() - begin);
    }
    return {1e6 * least, operation->implementation()};
}

template <class Shape>
void compare(Device& device, const std::string& name, const Shape& shape) {
    const auto [exact, by] = measure(device, shape, Precision::float32);
    const auto [rounded, rounded_by] = measure(device, shape, Precision::bfloat16);
    std::cout << name << ": " << exact << " µs, " << rounded << " µs, ratio " << exact / rounded << " (" << by << "; "
              << rounded_by << ")" << std::endl;
}

}  // namespace

int main() {
    const auto device = make_cpu_device(1);
    if (!device->supports(Precision::bfloat16)) {
        std::cerr << "bench_operations: this processor has no bfloat16" << std::endl;
        return 2;
    }
    struct Convolution {
        std::int64_t batch, side, in, out, kernel, groups;
    };
    for (const auto& [batch, side, in, out, kernel, groups] : std::vector<Convolution>{{64, 28, 1, 10, 3, 1},
                                                                                       {64, 28, 4, 4, 3, 1},
                                                                                       {64, 28, 10, 10, 3, 1},
                                                                                       {64, 28, 16, 16, 3, 1},
                                                                                       {64, 28, 10, 10, 1, 1},
                                                                                       {32, 32, 3, 32, 3, 1},
                                                                                       {32, 32, 32, 32, 3, 1},
                                                                                       {32, 16, 64, 64, 3, 1},
                                                                                       {32, 8, 128, 128, 3, 1},
                                                                                       {32, 16, 64, 64, 1, 1},
                                                                                       {32, 16, 64, 64, 3, 16},
                                                                                       {32, 16, 32, 32, 3, 32}}) {
        compare(*device,
                std::to_string(in) + " -> " + std::to_string(out) + ", kernel " + std::to_string(kernel) + ", groups " +
                    std::to_string(groups) + ", " + std::to_string(side) + " x " + std::to_string(side) + ", batch " +
                    std::to_string(batch),
                ConvolutionShape{.batch = batch,
                                 .height = side,
                                 .width = side,
                                 .channels_in = in,
                                 .channels_out = out,
                                 .kernel = kernel,
                                 .padding_before = kernel / 2,
                                 .padding_after = kernel / 2,
                                 .groups = groups,
                                 .activation = Activation::relu,
                                 .needs_input_grad = in > 3});
    }
    struct Linear {
        std::int64_t batch, side, in, units;
    };
    for (const auto& [batch, side, in, units] : std::vector<Linear>{{64, 28, 10, 10},
                                                                    {64, 28, 10, 32},
                                                                    {64, 4, 128, 10},
                                                                    {64, 4, 128, 64},
                                                                    {64, 1, 512, 32},
                                                                    {64, 1, 512, 256}}) {
        compare(*device,
                "linear " + std::to_string(side * side * in) + " -> " + std::to_string(units) + ", batch " +
                    std::to_string(batch),
                LinearShape{.batch = batch, .height = side, .width = side, .channels = in, .units = units});
    }
}
