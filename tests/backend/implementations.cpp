#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "finch/backend/device.hpp"

#include <doctest/doctest.h>
#include <string>

namespace finch::backend {

TEST_CASE("convolutions of configs/mnist.yaml run on oneDNN's fast paths, not on gemm or the reference") {
    if (!__builtin_cpu_supports("avx2")) {
        MESSAGE("skipped: this processor has no AVX2");
        return;
    }
    const auto device = make_cpu_device(1);
    for (const std::int64_t batch : {8, 16}) {
        for (const Activation activation : {Activation::relu, Activation::sigmoid, Activation::tanh}) {
            const ConvolutionShape first{batch, 28, 28, 1, 10, 3, 1, 1, 1, activation, false};
            const ConvolutionShape later{batch, 28, 28, 10, 10, 3, 1, 1, 1, activation, true};
            for (const ConvolutionShape& shape : {first, later}) {
                const std::string used = device->convolution(shape)->implementation();
                CAPTURE(used);
                CHECK(used.find("gemm:") == std::string::npos);
                CHECK(used.find("ref") == std::string::npos);
            }
        }
    }
}

}  // namespace finch::backend
