// Measures operations on one thread of a CPU. Reads lines "conv PRECISION BATCH SIDE IN OUT KERNEL [STRIDE [GROUPS]]"
// or "linear PRECISION BATCH SIDE IN UNITS" from standard input, and answers each line with the least processor time of
// forward() and of backward() in 20 turns, in µs, and the implementation. tools/bench/operations.py compares programs.
#include "finch/backend/device.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <exception>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
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

struct Times {
    double forward = std::numeric_limits<double>::max();
    double backward = std::numeric_limits<double>::max();
    std::string implementation;
};

template <class Shape>
Times measure(Device& device, const Shape& shape) {
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
    Times least{.implementation = operation->implementation()};
    for (int turn = 0; turn < 20; ++turn) {
        const Buffer grad_y = filled(y.size());
        const double begin = processor_seconds();
        operation->forward(pass, in, y.data());
        const double middle = processor_seconds();
        operation->backward(pass, in, y.data(), grad_y.data(), out, grad_weights.data());
        least.forward = std::min(least.forward, 1e6 * (middle - begin));
        least.backward = std::min(least.backward, 1e6 * (processor_seconds() - middle));
    }
    return least;
}

Precision precision_of(const std::string& word) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
        if (word == (precision == Precision::float32 ? "float32" : "bfloat16")) {
            return precision;
        }
    }
    throw std::invalid_argument("a precision is float32 or bfloat16, not \"" + word + "\"");
}

Times answer(Device& device, const std::string& line) {
    std::istringstream words(line);
    std::string kind, precision;
    std::int64_t batch = 0, side = 0, in = 0, out = 0, kernel = 1, stride = 1, groups = 1;
    words >> kind >> precision >> batch >> side >> in >> out;
    if (!words || (kind != "conv" && kind != "linear") || (kind == "conv" && !(words >> kernel))) {
        throw std::invalid_argument("not a line that bench_operations reads: \"" + line + "\"");
    }
    words >> stride >> groups;
    if (kind == "linear") {
        return measure(device, LinearShape{.batch = batch,
                                           .height = side,
                                           .width = side,
                                           .channels = in,
                                           .units = out,
                                           .precision = precision_of(precision)});
    }
    return measure(device, ConvolutionShape{.batch = batch,
                                            .height = side,
                                            .width = side,
                                            .channels_in = in,
                                            .channels_out = out,
                                            .kernel = kernel,
                                            .stride = stride,
                                            .padding_before = kernel / 2,
                                            .padding_after = kernel / 2,
                                            .groups = groups,
                                            .activation = Activation::relu,
                                            .needs_input_grad = in > 3,
                                            .precision = precision_of(precision)});
}

}  // namespace

int main() {
    try {
        const auto device = make_cpu_device(1);
        for (std::string line; std::getline(std::cin, line);) {
            const Times times = answer(*device, line);
            std::cout << times.forward << ' ' << times.backward << ' ' << times.implementation << std::endl;
        }
    } catch (const std::exception& error) {
        std::cerr << "bench_operations: " << error.what() << std::endl;
        return 2;
    }
}
