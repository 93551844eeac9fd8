// Compares the CPU kernels of one instruction set with loops in float64, without oneDNN and the other libraries of
// Finch. So it can be compiled for another processor and run under an emulator (tests/install/neon.py). FINCH_KERNELS
// is the namespace of the kernels: baseline, avx2 or avx512.
#include "finch/backend/planes.hpp"

#include "../../src/backend/cpu/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

namespace {

using namespace finch::backend;
using namespace finch::backend::cpu;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

const Kernels& tested = finch::backend::cpu::FINCH_KERNELS::own_kernels;

std::size_t floats(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

/// Random numbers in [−1, 1).
Floats random_floats(std::int64_t count) {
    static std::mt19937 generator(1);
    std::uniform_real_distribution<float> between(-1, 1);
    Floats values(floats(count));
    std::generate(values.begin(), values.end(), [&] { return between(generator); });
    return values;
}

/// A batch of random inputs with the expected results of a convolution in float64. Layouts are NHWC and (output, input,
/// row, column).
struct Problem {
    DirectPass size;
    bool has_relu;
    std::int64_t batch = 2;
    std::int64_t x_size = size.height * size.width * size.channels;  ///< of a sample
    std::int64_t y_size = size.height_out * size.width_out * size.channels_out;
    std::int64_t weights_size = size.channels_out * size.channels * size.kernel * size.kernel;
    Floats x = random_floats(batch * x_size);
    Floats weights = random_floats(weights_size);
    Floats bias = random_floats(size.channels_out);
    Floats grad_y = random_floats(batch * y_size);
    Doubles y = Doubles(grad_y.size());
    Doubles grad_x = Doubles(x.size());
    Doubles grad_parameters = Doubles(weights.size() + bias.size());  ///< of the weights, then of the bias

    Problem(const DirectPass& pass, bool with_relu) : size(pass), has_relu(with_relu) {
        compute_outputs();
        compute_gradients();
    }

    /// Calls work(index in x, in weights, in y) for each product of the convolution.
    template <class Work>
    void for_products(Work work) const {
        for (std::int64_t at = 0; at < batch * y_size; ++at) {
            const std::int64_t output = at % size.channels_out;
            const std::int64_t column = at / size.channels_out % size.width_out * size.stride - size.padding_before;
            const std::int64_t pixel_row = at / (size.channels_out * size.width_out);
            const std::int64_t row = pixel_row % size.height_out * size.stride - size.padding_before;
            const std::int64_t sample = pixel_row / size.height_out;
            for (std::int64_t k = 0; k < size.kernel * size.kernel; ++k) {
                const std::int64_t i = row + k / size.kernel;
                const std::int64_t j = column + k % size.kernel;
                if (i < 0 || i >= size.height || j < 0 || j >= size.width) {
                    continue;
                }
                for (std::int64_t c = 0; c < size.channels; ++c) {
                    work(floats(((sample * size.height + i) * size.width + j) * size.channels + c),
                         floats((output * size.channels + c) * size.kernel * size.kernel + k), floats(at));
                }
            }
        }
    }
    void compute_outputs() {
        for (std::size_t at = 0; at < y.size(); ++at) {
            y[at] = bias[at % bias.size()];
        }
        for_products([&](std::size_t in_x, std::size_t in_weights, std::size_t in_y) {
            y[in_y] += double{x[in_x]} * double{weights[in_weights]};
        });
        for (double& value : y) {
            value = has_relu ? std::max(value, 0.0) : value;
        }
    }
    void compute_gradients() {
        Doubles grad(grad_y.begin(), grad_y.end());
        for (std::size_t at = 0; at < grad.size(); ++at) {
            grad[at] = has_relu && !(y[at] > 0) ? 0 : grad[at];
            grad_parameters[weights.size() + at % bias.size()] += grad[at];
        }
        for_products([&](std::size_t in_x, std::size_t in_weights, std::size_t in_y) {
            grad_x[in_x] += grad[in_y] * double{weights[in_weights]};
            grad_parameters[in_weights] += grad[in_y] * double{x[in_x]};
        });
    }
    [[nodiscard]] Floats y_in_floats() const { return {y.begin(), y.end()}; }
};

/// The results of a kernel.
struct Results {
    Floats y, grad_x, grad_parameters;

    explicit Results(const Problem& problem)
        : y(problem.y.size()), grad_x(problem.x.size()), grad_parameters(problem.grad_parameters.size()) {}
    float* grad_bias(const Problem& problem) { return grad_parameters.data() + problem.weights_size; }
};

/// The largest difference relative to the largest expected value. A NaN gives infinity.
double error_of(const Floats& values, const Doubles& expected) {
    double largest = 0;
    double error = 0;
    for (std::size_t k = 0; k < values.size(); ++k) {
        const double difference = std::abs(double{values[k]} - expected[k]);
        error = difference <= error ? error : std::isnan(difference) ? INFINITY : difference;
        largest = std::max(largest, std::abs(expected[k]));
    }
    return error / largest;
}

/// The comparisons of one kernel.
class Comparison {
public:
    Comparison(const char* kernel, double most) : kernel_(kernel), most_(most) {}
    void check(const char* tensor, const DirectPass& size, const Floats& values, const Doubles& expected) {
        const double error = error_of(values, expected);
        largest_ = std::max(largest_, error);
        ++count_;
        if (error > most_) {
            std::printf("%s: %s of %d x %d, %d to %d channels, kernel %d, stride %d, padding %d: error %.2g\n", kernel_,
                        tensor, static_cast<int>(size.height), static_cast<int>(size.width),
                        static_cast<int>(size.channels), static_cast<int>(size.channels_out),
                        static_cast<int>(size.kernel), static_cast<int>(size.stride),
                        static_cast<int>(size.padding_before), error);
        }
    }
    void check_all(const Problem& problem, const Results& results) {
        check("y", problem.size, results.y, problem.y);
        check("grad_x", problem.size, results.grad_x, problem.grad_x);
        check_parameters(problem, results);
    }
    /// Compares the gradients of weights and bias as one tensor, since the terms of a bias alone may cancel.
    void check_parameters(const Problem& problem, const Results& results) {
        check("grad_parameters", problem.size, results.grad_parameters, problem.grad_parameters);
    }
    [[nodiscard]] bool passed() const {
        std::printf("%s, %s: %d tensors, largest error %.2g, accepted %.2g\n", tested.name, kernel_, count_, largest_,
                    most_);
        return count_ > 0 && largest_ <= most_;
    }

private:
    const char* kernel_;
    double most_;
    double largest_ = 0;
    int count_ = 0;
};

DirectPass size_of(std::int64_t height, std::int64_t width, std::int64_t channels, std::int64_t channels_out,
                   std::int64_t kernel, std::int64_t stride, std::int64_t before, std::int64_t after) {
    return {.height = height,
            .width = width,
            .channels = channels,
            .height_out = (height + before + after - kernel) / stride + 1,
            .width_out = (width + before + after - kernel) / stride + 1,
            .channels_out = channels_out,
            .kernel = kernel,
            .stride = stride,
            .padding_before = before,
            .padding_after = after};
}

/// 3 × 3 convolutions of these channels and sizes, with and without relu, with three paddings.
template <class Work>
void for_problems(const std::vector<std::int64_t>& channels, const std::vector<std::int64_t>& sizes, Work work) {
    const std::vector<std::pair<std::int64_t, std::int64_t>> paddings{{1, 1}, {1, 1}, {0, 2}, {2, 1}};
    std::size_t number = 0;
    for (const std::int64_t in : channels)
        for (const std::int64_t out : channels)
            for (const std::int64_t height : sizes)
                for (const std::int64_t width : sizes) {
                    const auto& [before, after] = paddings[number++ % paddings.size()];
                    work(Problem(size_of(height, width, in, out, 3, 1, before, after), number % 3 != 0));
                }
}

ConvolutionPass channels_pass(const DirectPass& size, std::int64_t tile, bool to_input_gradient) {
    ConvolutionPass pass{.height = size.height,
                         .width = size.width,
                         .channels = size.channels,
                         .height_out = size.height_out,
                         .width_out = size.width_out,
                         .channels_out = size.channels_out,
                         .padding = size.padding_before};
    if (to_input_gradient) {
        std::swap(pass.height, pass.height_out);
        std::swap(pass.width, pass.width_out);
        std::swap(pass.channels, pass.channels_out);
        pass.padding = 2 - pass.padding;
    }
    pass.tile_rows = (pass.height_out + tile - 1) / tile;
    pass.tile_columns = (pass.width_out + tile - 1) / tile;
    return pass;
}

/// Computes a pass in two parts, like two threads.
void run_channels(const ChannelsKernels& kernels, const ConvolutionPass& pass, std::int64_t batch, const Floats& from,
                  const Floats& weights, bool rotated, const float* bias, bool has_relu, Floats& to) {
    Floats packed(floats(kernels.packed_floats(pass)));
    Floats scratch(floats(kernels.scratch_floats(pass)));
    const std::int64_t tiles = batch * pass.tile_rows * pass.tile_columns;
    kernels.pack(pass, weights.data(), rotated, packed.data());
    for (const auto& [first, behind] : {std::pair{std::int64_t{0}, tiles / 3}, {tiles / 3, tiles}}) {
        kernels.run(pass, from.data(), packed.data(), bias, has_relu, to.data(), first, behind, scratch.data());
    }
}

Results results_of(const ChannelsKernels& kernels, const Problem& problem) {
    Results results(problem);
    const ConvolutionPass forward = channels_pass(problem.size, kernels.tile, false);
    const ConvolutionPass backward = channels_pass(problem.size, kernels.tile, true);
    run_channels(kernels, forward, problem.batch, problem.x, problem.weights, false, problem.bias.data(),
                 problem.has_relu, results.y);

    const Floats y = problem.y_in_floats();
    Floats grad_y = problem.grad_y;
    Floats sums(floats(kernels.sums_floats(forward)));
    Floats scratch(floats(kernels.scratch_floats(forward)));
    const std::int64_t tiles = problem.batch * forward.tile_rows * forward.tile_columns;
    for (const auto& [first, behind] : {std::pair{std::int64_t{0}, tiles / 3}, {tiles / 3, tiles}}) {
        kernels.add_gradient(forward, problem.x.data(), problem.has_relu ? y.data() : nullptr, grad_y.data(), first,
                             behind, sums.data(), scratch.data());
    }
    kernels.write_gradient(forward, sums.data(), results.grad_parameters.data(), results.grad_bias(problem));
    run_channels(kernels, backward, problem.batch, grad_y, problem.weights, true, nullptr, false, results.grad_x);
    return results;
}

bool check_channels(const ChannelsKernels& kernels, const char* name, double most) {
    Comparison comparison(name, most);
    for_problems({16, 17, 24}, {6, 7, 14},
                 [&](const Problem& problem) { comparison.check_all(problem, results_of(kernels, problem)); });
    return comparison.passed();
}

/// One sample in planes.
class PlanesSample {
public:
    PlanesSample(std::int64_t height, std::int64_t width, std::int64_t channels)
        : size_(height, width),
          inside_(floats(size_.floats_per_channel())),
          values(floats(channels * size_.floats_per_channel())) {
        for (std::int64_t tile = 0; tile < size_.tiles; ++tile) {
            for (std::int64_t output = 0; output < 4; ++output) {
                const bool is_inside =
                    2 * (tile / size_.pitch) + output / 2 < height && 2 * (tile % size_.pitch) + output % 2 < width;
                inside_[floats(output * size_.plane + tile)] = is_inside ? -1 : 0;
            }
        }
    }
    [[nodiscard]] PlanesGeometry geometry() const {
        return {.pitch = size_.pitch, .tiles = size_.tiles, .plane = size_.plane, .inside = inside_.data()};
    }

private:
    PlanesSize size_;
    std::vector<std::int32_t> inside_;

public:
    Floats values;
};

/// Computes sample `n` and adds its gradients. False if the padding of an output in planes is not complete.
bool run_sample(const Problem& problem, std::int64_t n, Results& results, Floats& sums) {
    const PlanesKernels& kernels = tested.planes;
    const DirectPass& size = problem.size;
    PlanesSample x(size.height_out, size.width_out, size.channels);
    PlanesSample y(size.height_out, size.width_out, size.channels_out);
    PlanesSample expected = y, grad_y = y;
    PlanesSample grad_out(size.height, size.width, size.channels_out);
    PlanesSample grad_x(size.height, size.width, size.channels);
    const PlanesPass forward{size.channels, size.channels_out, y.geometry()};
    const PlanesPass backward{size.channels_out, size.channels, grad_x.geometry()};
    Floats packed(floats(16 * size.channels * size.channels_out));
    Floats scratch(floats(std::max(kernels.scratch_floats(forward), kernels.scratch_floats(backward))));
    const auto fill = [&](PlanesSample& to, std::int64_t padding, std::int64_t height, std::int64_t width,
                          std::int64_t channels, const float* from) {
        kernels.fill(to.geometry(), padding, height, width, channels, from, to.values.data());
    };

    fill(x, size.padding_before, size.height, size.width, size.channels, problem.x.data() + n * problem.x_size);
    std::fill(y.values.begin(), y.values.end(), NAN);
    kernels.pack(forward, problem.weights.data(), false, packed.data());
    kernels.run(forward, x.values.data(), packed.data(), problem.bias.data(), problem.has_relu, y.values.data(),
                scratch.data());
    float* const y_out = results.y.data() + n * problem.y_size;
    kernels.read(y.geometry(), size.height_out, size.width_out, size.channels_out, y.values.data(), y_out);
    fill(expected, 1, size.height_out, size.width_out, size.channels_out, y_out);
    const bool is_complete = y.values == expected.values;

    Floats masked(problem.grad_y.begin() + n * problem.y_size, problem.grad_y.begin() + (n + 1) * problem.y_size);
    fill(y, 1, size.height_out, size.width_out, size.channels_out, problem.y_in_floats().data() + n * problem.y_size);
    fill(grad_y, 1, size.height_out, size.width_out, size.channels_out, masked.data());
    kernels.add_gradient(forward, x.values.data(), problem.has_relu ? y.values.data() : nullptr, grad_y.values.data(),
                         sums.data(), scratch.data());

    kernels.read(grad_y.geometry(), size.height_out, size.width_out, size.channels_out, grad_y.values.data(),
                 masked.data());
    fill(grad_out, 2 - size.padding_before, size.height_out, size.width_out, size.channels_out, masked.data());
    kernels.pack(backward, problem.weights.data(), true, packed.data());
    kernels.run(backward, grad_out.values.data(), packed.data(), nullptr, false, grad_x.values.data(), scratch.data());
    kernels.read(grad_x.geometry(), size.height, size.width, size.channels, grad_x.values.data(),
                 results.grad_x.data() + n * problem.x_size);
    return is_complete;
}

bool check_planes(double most) {
    Comparison comparison("planes", most);
    bool is_complete = true;
    for_problems({1, 4, 10}, {5, 8, 15, 28}, [&](const Problem& problem) {
        Results results(problem);
        const PlanesSample y(problem.size.height_out, problem.size.width_out, 1);
        const PlanesPass forward{problem.size.channels, problem.size.channels_out, y.geometry()};
        Floats sums(floats(tested.planes.sums_floats(forward)));
        for (std::int64_t n = 0; n < problem.batch; ++n) {
            is_complete = run_sample(problem, n, results, sums) && is_complete;
        }
        tested.planes.write_gradient(forward, sums.data(), results.grad_parameters.data(), results.grad_bias(problem));
        comparison.check_all(problem, results);
    });
    if (!is_complete) {
        std::printf("planes: the padding of an output is not complete\n");
    }
    return comparison.passed() && is_complete;
}

bool check_direct(double most) {
    Comparison comparison("direct", most);
    const DirectKernels& kernels = tested.direct;
    const auto check_size = [&](const DirectPass& size) {
        const Problem problem(size, false);
        Results results(problem);
        Floats sums(floats(kernels.sums_floats(size)));
        Floats scratch(floats(kernels.scratch_floats(size)));
        for (std::int64_t n = 0; n < problem.batch; ++n) {
            kernels.add(size, problem.x.data() + n * problem.x_size, problem.grad_y.data() + n * problem.y_size,
                        sums.data(), scratch.data());
        }
        kernels.write(size, sums.data(), results.grad_parameters.data(), results.grad_bias(problem));
        comparison.check_parameters(problem, results);
    };
    for (const std::int64_t kernel : {1, 3, 5})
        for (const std::int64_t stride : {1, 2})
            for (const std::int64_t padding : {std::int64_t{0}, kernel / 2})
                for (const std::int64_t in : {1, 3, 10})
                    for (const std::int64_t out : {1, 5, 17}) {
                        check_size(size_of(9, 14, in, out, kernel, stride, padding, padding));
                    }
    return comparison.passed();
}

}  // namespace

int main() {
    const bool channels_2 = check_channels(tested.channels_2, "winograd_2x2", 1e-6);
    const bool channels_4 = check_channels(tested.channels_4, "winograd_4x4", 3e-6);
    const bool planes = check_planes(1e-6);
    const bool direct = check_direct(1e-5);
    return channels_2 && channels_4 && planes && direct ? 0 : 1;
}
