#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "finch/backend/device.hpp"

#include "backend/samples.hpp"

#include <doctest/doctest.h>

namespace finch::testing {
namespace {

/// Ten steps of one optimizer on both sides.
void compare(backend::OptimizerStep step) {
    const auto device = backend::make_cpu_device(1);
    constexpr std::size_t count = 1003;
    Values parameters = normals(count, 1);
    Values a(count);
    Values b(count);
    std::vector<float> on_parameters = floats(parameters);
    std::vector<float> on_a(count);
    std::vector<float> on_b(count);

    for (std::int64_t number = 1; number <= 10; ++number) {
        if (auto* sgd = std::get_if<backend::SgdStep>(&step)) {
            sgd->first = number == 1;
        }
        if (auto* adam = std::get_if<backend::AdamStep>(&step)) {
            adam->step = number;
        }
        const Values grads = normals(count, 10 + static_cast<std::uint32_t>(number));
        optimizer_step(step, parameters, grads, a, b);
        device->optimizer_step(step, on_parameters.data(), floats(grads).data(), on_a.data(), on_b.data(), count);
    }

    CHECK(worst(on_parameters, parameters) < 1e-5);
    CHECK(worst(on_a, a) < 1e-5);
    CHECK(worst(on_b, b) < 1e-5);
}

}  // namespace

TEST_CASE("ten steps of every optimizer agree with torch.optim's definitions in double") {
    compare(backend::SgdStep{0.1F});
    compare(backend::SgdStep{0.1F, 0.9F, 1e-2F});
    compare(backend::SgdStep{0.1F, 0.9F, 1e-2F, true});
    compare(backend::AdamStep{0.01F});
    compare(backend::AdamStep{0.01F, 0.8, 0.99, 1e-6F, 0.1F});
    compare(backend::AdamStep{0.01F, 0.9, 0.999, 1e-8F, 0.1F, true});
    compare(backend::AdadeltaStep{});
    compare(backend::AdadeltaStep{0.5F, 0.8F, 1e-5F, 0.01F});
}

TEST_CASE("the loss agrees with the reference; a sample of weight 0 counts nowhere") {
    const auto device = backend::make_cpu_device(1);
    const Values logits = normals(7 * 10, 4);
    const std::vector<std::int32_t> labels{2, 0, 1, 9, 3, 3, 7};
    const std::vector<float> weights{1, 1, 0, 1, 1, 1, 0};
    std::vector<float> grad(logits.size(), 7.0F);
    backend::LossSums sums{1.5, 2, 3};

    device->softmax_cross_entropy(floats(logits).data(), labels, weights, 10, 0.2F, grad.data(), sums);
    const Loss expected = softmax_cross_entropy(logits, labels, weights, 10, static_cast<double>(0.2F));

    CHECK(sums.loss == doctest::Approx(1.5 + expected.sum).epsilon(1e-12));
    CHECK(sums.correct == 2 + expected.correct);
    CHECK(sums.samples == 3 + 5);
    CHECK(worst(grad, expected.grad) < 1e-6);
}

TEST_CASE("huge logits give a finite loss, and a NaN gives a NaN") {
    const auto device = backend::make_cpu_device(1);
    const std::vector<std::int32_t> labels{0};
    const std::vector<float> weights{1};
    backend::LossSums large;
    backend::LossSums broken;

    device->softmax_cross_entropy(std::vector<float>{-1e4F, 1e4F}.data(), labels, weights, 2, 1, nullptr, large);
    device->softmax_cross_entropy(std::vector<float>{std::nanf(""), 1}.data(), labels, weights, 2, 1, nullptr, broken);

    CHECK(large.loss == doctest::Approx(2e4));
    CHECK(std::isnan(broken.loss));
}

TEST_CASE("images are gathered by index and normalised by channel; index -1 gives zeros") {
    const auto device = backend::make_cpu_device(1);
    const std::vector<std::uint8_t> pixels{0, 255, 51, 102, 10, 20, 30, 40};  // 2 images of 1 x 2 x 2
    const std::vector<std::int64_t> indices{1, -1, 0};
    const std::vector<float> mean{0.5F, 0.25F};
    const std::vector<float> deviation{0.5F, 2.0F};
    std::vector<float> out(12, 7.0F);

    device->gather_normalised(pixels, 4, indices, mean, deviation, out.data());

    const Values expected{(10 / 255.0 - 0.5) / 0.5,
                          (20 / 255.0 - 0.25) / 2,
                          (30 / 255.0 - 0.5) / 0.5,
                          (40 / 255.0 - 0.25) / 2,
                          0,
                          0,
                          0,
                          0,
                          -1,
                          0.375,
                          (0.2 - 0.5) / 0.5,
                          (0.4 - 0.25) / 2};
    CHECK(worst(out, expected) < 1e-6);
}

}  // namespace finch::testing
