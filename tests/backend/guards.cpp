// Tests that the CPU backend's own kernels stay inside their tensors. A page without access follows each tensor.
#include "backend/trial.hpp"

#include <algorithm>
#include <cstddef>
#include <doctest/doctest.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::test;

namespace {

/// Floats that end where a page without access begins.
class GuardedFloats {
public:
    explicit GuardedFloats(std::size_t count) : count_(count) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        const std::size_t bytes = (count * sizeof(float) + page - 1) / page * page;
        bytes_ = bytes + page;
        memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory_ != MAP_FAILED);
        REQUIRE(::mprotect(static_cast<std::byte*>(memory_) + bytes, page, PROT_NONE) == 0);
        data_ = reinterpret_cast<float*>(static_cast<std::byte*>(memory_) + bytes) - count;
    }
    explicit GuardedFloats(const std::vector<float>& values) : GuardedFloats(values.size()) {
        std::copy(values.begin(), values.end(), data_);
    }
    GuardedFloats(const GuardedFloats&) = delete;
    GuardedFloats& operator=(const GuardedFloats&) = delete;
    ~GuardedFloats() { ::munmap(memory_, bytes_); }

    [[nodiscard]] float* data() const { return data_; }
    [[nodiscard]] std::vector<float> values() const { return {data_, data_ + count_}; }

private:
    std::size_t count_;
    std::size_t bytes_ = 0;
    void* memory_ = nullptr;
    float* data_ = nullptr;
};

std::int64_t floats_of(Layout layout, std::int64_t height, std::int64_t width, std::int64_t channels) {
    return channels * (layout == Layout::nhwc ? height * width : PlanesSize(height, width).floats_per_channel());
}

std::vector<float> random_floats(RandomStream& random, std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::generate(values.begin(), values.end(), [&] { return static_cast<float>(random.normal()); });
    return values;
}

/// Runs both passes on guarded tensors, and compares the outputs with those on unguarded tensors.
void check_guarded(Device& device, const ConvolutionShape& shape) {
    CAPTURE(shape.height);
    CAPTURE(shape.width);
    CAPTURE(shape.channels_in);
    CAPTURE(shape.channels_out);
    CAPTURE(shape.kernel);
    CAPTURE(shape.padding_before);
    CAPTURE(shape.padding_after);
    const auto operation = device.make(shape);
    const std::string kernel = operation->implementation();
    CAPTURE(kernel);
    RandomStream random(3, Purpose::test);
    const std::int64_t inputs = shape.batch * floats_of(shape.x_layout, shape.height, shape.width, shape.channels_in);
    const std::int64_t outputs =
        shape.batch * floats_of(shape.y_layout, shape.height_out(), shape.width_out(), shape.channels_out);
    const std::vector<float> x = random_floats(random, inputs);
    const std::vector<float> grad_y = random_floats(random, outputs);
    const std::vector<float> parameters = random_floats(random, shape.weights() + shape.channels_out);
    const auto results = [&]<class Floats>(Floats in, Floats weights, Floats y, Floats of_y, Floats of_x, Floats sums) {
        TrialStep step(device);
        const float* const from[] = {in->data()};
        float* const to[] = {of_x->data()};
        operation->pack(weights->data(), nullptr);
        operation->forward(step.pass(), from, y->data());
        operation->backward(step.pass(), from, y->data(), of_y->data(), to, sums->data());
        return std::vector{std::vector(y->data(), y->data() + outputs),
                           std::vector(of_x->data(), of_x->data() + inputs),
                           std::vector(sums->data(), sums->data() + parameters.size())};
    };
    const auto guarded = [](const std::vector<float>& values) { return std::make_unique<GuardedFloats>(values); };
    const auto plain = [](const std::vector<float>& values) { return std::make_unique<std::vector<float>>(values); };

    const std::vector<float> y(grad_y.size());
    const auto actual =
        results(guarded(x), guarded(parameters), guarded(y), guarded(grad_y), guarded(x), guarded(parameters));
    const auto expected = results(plain(x), plain(parameters), plain(y), plain(grad_y), plain(x), plain(parameters));

    CHECK(actual == expected);
}

}  // namespace

TEST_CASE("guards: 3 x 3 convolutions read and write inside their tensors only") {
    const auto device = make_cpu_device(1);
    for (const auto& [in, out] : {std::pair{1, 1}, {1, 10}, {4, 5}, {10, 10}, {15, 17}, {16, 16}, {17, 31}, {33, 18}})
        for (const auto& [height, width] : {std::pair{1, 1}, {1, 5}, {5, 1}, {6, 7}, {9, 4}, {15, 14}})
            for (const auto& [before, after] : {std::pair{1, 1}, {0, 2}, {2, 2}, {2, 1}, {0, 0}}) {
                if (std::min(height, width) + before + after >= 3) {
                    check_guarded(*device, {.batch = 2,
                                            .height = height,
                                            .width = width,
                                            .channels_in = in,
                                            .channels_out = out,
                                            .kernel = 3,
                                            .padding_before = before,
                                            .padding_after = after,
                                            .activation = Activation::relu});
                }
            }
}

TEST_CASE("guards: convolutions of every size of kernel and stride read and write inside their tensors only") {
    const auto device = make_cpu_device(1);
    for (const std::int64_t kernel : {1, 2, 4, 5})
        for (const std::int64_t stride : {1, 2, 3})
            for (const auto& [in, out] : {std::pair{1, 1}, {3, 5}, {9, 13}, {17, 15}})
                for (const auto& [before, after] : {std::pair{0, 0}, {0, kernel - 1}, {kernel - 1, kernel / 2}}) {
                    check_guarded(*device, {.batch = 2,
                                            .height = 5,
                                            .width = 8,
                                            .channels_in = in,
                                            .channels_out = out,
                                            .kernel = kernel,
                                            .stride = stride,
                                            .padding_before = before,
                                            .padding_after = after});
                }
}

TEST_CASE("guards: convolutions in planes read and write inside their tensors only") {
    const auto device = make_cpu_device(1);
    for (const auto& [in, out] : {std::pair{1, 4}, {5, 6}, {13, 17}})
        for (const auto& [height, width] : {std::pair{1, 1}, {1, 6}, {7, 1}, {14, 15}, {28, 28}})
            for (const auto& [x_layout, y_layout] : {std::pair{Layout::planes, Layout::nhwc},
                                                     {Layout::planes, Layout::planes},
                                                     {Layout::nhwc, Layout::planes}}) {
                ConvolutionShape shape = own_shape(2, height, width, in, out);
                shape.x_layout = x_layout;
                shape.y_layout = y_layout;
                check_guarded(*device, shape);
            }
}
