// Tests of the operations that use cuDNN and cuBLASLt, with every kind of engine, on stand-ins of these libraries.
#include "finch/backend/cuda.hpp"
#include "finch/base/error.hpp"
#include "finch/nn/initialization.hpp"
#include "finch/nn/model.hpp"

#include "backend/trial.hpp"
#include "support/float16.hpp"
#include "support/rehearsal/control.hpp"
#include "support/rehearsal/engines.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::test;
using namespace finch::backend::cuda;

namespace {

constexpr ConvolutionShape odd{.batch = 3,
                               .height = 7,
                               .width = 6,
                               .channels_in = 3,
                               .channels_out = 10,
                               .kernel = 3,
                               .stride = 2,
                               .padding_before = 1,
                               .padding_after = 1,
                               .activation = Activation::relu};

/// `same` padding for an even kernel: one more row after the image than before.
constexpr ConvolutionShape even{.batch = 3,
                                .height = 7,
                                .width = 6,
                                .channels_in = 3,
                                .channels_out = 10,
                                .kernel = 4,
                                .padding_before = 1,
                                .padding_after = 2,
                                .activation = Activation::relu};

/// Restricts cuDNN's engines to the requests for which `offered` is true. Then checks that the implementation's name
/// begins with `name`, and that all passes are right.
void check_choice(const ConvolutionShape& shape, const std::string& name,
                  std::function<bool(const CudnnRequest&)> offered) {
    rehearsal::offer_engines(std::move(offered));
    const auto device = make_device();
    const std::string implementation = device->make(shape)->implementation();
    CAPTURE(implementation);
    CHECK(implementation.find(name) == 0);
    check(*device, shape);
    rehearsal::offer_engines([](const CudnnRequest&) { return true; });
}

}  // namespace

TEST_CASE("the preferred engine uses NHWC without copies, with fused bias and activation") {
    check_choice(odd, "cudnn:nhwc float32, fused", [](const CudnnRequest&) { return true; });
}

TEST_CASE("activations other than none and relu are not fused") {
    for (const auto& [activation, name] : {std::pair{Activation::none, "cudnn:nhwc float32, fused"},
                                           {Activation::sigmoid, "cudnn:nhwc float32 ("},
                                           {Activation::tanh, "cudnn:nhwc float32 ("}}) {
        ConvolutionShape shape = odd;
        shape.activation = activation;
        check_choice(shape, name, [](const CudnnRequest&) { return true; });
    }
}

TEST_CASE("cuDNN's generic engine is used only if no other request has an engine") {
    rehearsal::set_engines({{"eng0"}});
    check_choice(odd, "cudnn:nhwc float32, fused (eng0)", [](const CudnnRequest&) { return true; });
    rehearsal::set_engines({{"eng7_k0=1", {}, 1000, 16}, {"eng0"}});
    check_choice(odd, "cudnn:nhwc float32, channels 16->16, fused (eng7_k0=1)",
                 [](const CudnnRequest&) { return true; });
    rehearsal::set_engines({rehearsal::Engine{}});
}

TEST_CASE("tf32 prefers channels in multiples of 4") {
    ConvolutionShape shape = odd;
    shape.precision = Precision::tf32;
    check_choice(shape, "cudnn:nhwc float32, channels 4->12, fused", [](const CudnnRequest&) { return true; });
}

TEST_CASE("if no engine fuses, bias and activation are separate kernels") {
    check_choice(odd, "cudnn:nhwc float32 (", [](const CudnnRequest& request) { return !request.is_fused; });
}

TEST_CASE("if no engine supports the channels, the channels are padded, with and without fusion") {
    const auto is_padded = [](const CudnnRequest& request) { return request.shape.channels_in % 4 == 0; };
    check_choice(odd, "cudnn:nhwc float32, channels 4->12, fused", is_padded);
    check_choice(odd, "cudnn:nhwc float32, channels 4->12 (",
                 [&](const CudnnRequest& request) { return is_padded(request) && !request.is_fused; });
}

TEST_CASE("if cuDNN has no engine for a pass, the error names the pass and the shape") {
    for (const auto& [lacking, words] :
         {std::pair{ConvolutionPass::forward, "the forward of a convolution 3x3, 3->10 channels, batch 3"},
          {ConvolutionPass::data_gradient, "the data gradient of"},
          {ConvolutionPass::weight_gradient, "the weight gradient of"}}) {
        rehearsal::offer_engines([lacking = lacking](const CudnnRequest& request) { return request.pass != lacking; });
        const auto device = make_device();
        CHECK_THROWS_WITH_AS(device->make(odd), doctest::Contains(words), ApiError);
    }
    rehearsal::offer_engines([](const CudnnRequest&) { return true; });
    CHECK_NOTHROW(make_device()->make(odd));
}

TEST_CASE("many channels, and an output of one pixel, give the reference's results") {
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

namespace {

/// A 16-bit precision: its rounding, and the tolerance of results relative to float32.
struct Narrow {
    Precision precision;
    TensorType type;
    std::string name;
    float (*rounded)(float);
    double tolerance;
};
const std::vector<Narrow> narrow_ones{{Precision::bfloat16, TensorType::bfloat16, "bfloat16", to_bfloat16, 2e-2},
                                      {Precision::float16, TensorType::float16, "float16", to_float16, 2e-3}};

void check_padded(const Narrow& narrow) {
    ConvolutionShape shape = odd;
    shape.precision = narrow.precision;
    const auto device = make_device();
    Trial<ConvolutionShape> trial(*device, shape, 1);
    CHECK(trial.operation->implementation().find("cudnn:nhwc " + narrow.name + ", channels 8->16 (") == 0);

    forward(trial.device, *trial.operation, trial.device_x, trial.device_y);

    CHECK(difference(from_device(*device, trial.device_y), trial.expected) < narrow.tolerance);
    CHECK(difference(from_device(*device, trial.device_y), trial.expected) > 1e-5);  // the result was rounded
    const std::vector<float> outputs = from_device(*device, trial.device_y);
    const Tensor grad_y = normal_tensor(trial.random, outputs.size());
    const auto gradients =
        reference::backward(shape, trial.x, trial.parameters, Tensor(outputs.begin(), outputs.end()), grad_y);
    const Buffer device_grad_y = on_device(*device, grad_y);
    const Buffer grad_x = device->allocate(trial.x.size());
    const Buffer grad_parameters = device->allocate(trial.parameters.size());
    backward(trial.device, *trial.operation, trial.device_x, trial.device_y, device_grad_y, grad_x, grad_parameters);
    CHECK(difference(from_device(*device, grad_x), gradients.x) < narrow.tolerance);
    CHECK(difference(from_device(*device, grad_parameters), gradients.parameters) < narrow.tolerance);
}

Tensor narrowed(const Narrow& narrow, Tensor values) {
    for (double& value : values) {
        value = double{narrow.rounded(static_cast<float>(value))};
    }
    return values;
}

}  // namespace

TEST_CASE("bfloat16 and float16: channels are padded to 8, and results equal float32's within the rounding") {
    for (const Narrow& narrow : narrow_ones) {
        CAPTURE(narrow.name);
        check_padded(narrow);
    }
}

TEST_CASE("the weights of a model are those of the last pack(), even if the parameters change before forward()") {
    const nn::ModelPlan plan =
        nn::plan_model({nn::ConvLayer{.channels = 5}, nn::FlattenLayer{}, nn::LinearLayer{}}, {6, 7, 3}, 5, 3);
    const auto device = make_cuda_device(0, CudaPath::library);
    nn::Model model(*device, plan);
    model.set_state(nn::initial_state(plan, 1, 1));
    const std::vector<std::uint8_t> pixels(6 * 7 * 3);
    const std::vector<std::int32_t> labels(1);
    const auto context = device->make_step_context({.pixels = pixels, .labels = labels, .pixels_per_image = 126}, 3);
    const auto outputs = [&] {
        device->upload(std::vector<float>(3 * 126, 1.0F), model.input());
        model.forward({.step = *context});
        std::vector<float> logits(3 * 5);
        device->download(model.logits(), logits);
        return logits;
    };
    const std::vector<float> expected = outputs();
    model.pack();
    const std::size_t weights = 5 * 3 * 9;

    device->upload(std::vector<float>(weights, 7.0F), model.parameters().data() + plan.nodes.front().parameters_offset);

    CHECK(outputs() == expected);
}

TEST_CASE("bfloat16 and float16: gradients of weights have the inputs of float32, gradients of x are rounded") {
    for (const Narrow& narrow : narrow_ones) {
        CAPTURE(narrow.name);
        rehearsal::offer_engines([](const CudnnRequest&) { return true; });
        ConvolutionShape shape = odd;
        shape.precision = narrow.precision;
        shape.activation = Activation::none;
        const auto device = make_device();
        Trial<ConvolutionShape> trial(*device, shape, 1);
        const Tensor grad_y = normal_tensor(trial.random, trial.expected.size());
        const auto exact = reference::backward(shape, trial.x, trial.parameters, trial.expected, grad_y);
        const auto rounded = reference::backward(shape, trial.x, narrowed(narrow, trial.parameters), trial.expected,
                                                 narrowed(narrow, grad_y));
        const Buffer device_grad_y = on_device(*device, grad_y);
        const Buffer grad_x = device->allocate(trial.x.size());
        const Buffer grad_parameters = device->allocate(trial.parameters.size());
        backward(trial.device, *trial.operation, trial.device_x, trial.device_y, device_grad_y, grad_x,
                 grad_parameters);

        CHECK(difference(from_device(*device, grad_parameters), exact.parameters) < 1e-6);
        CHECK(difference(from_device(*device, grad_x), narrowed(narrow, rounded.x)) < 1e-6);
        CHECK(difference(from_device(*device, grad_x), exact.x) > narrow.tolerance / 200);
        for (const CudnnRequest& request : rehearsal::requests()) {
            CHECK((request.pass == ConvolutionPass::weight_gradient) == (request.type == TensorType::float32));
        }
    }
}

TEST_CASE("float16: gradients above its range become infinite, small ones are kept, in both kinds of layers") {
    const auto device = make_device();
    struct Gradients {
        std::vector<float> x, parameters;
    };
    const auto grads_of = [&](const auto& shape, double size) {
        Trial trial(*device, shape, 1);
        Tensor grad_y(trial.expected.size());
        std::fill(grad_y.begin(), grad_y.end(), size);
        const Buffer grad_x = device->allocate(trial.x.size());
        const Buffer grad_parameters = device->allocate(trial.parameters.size());
        forward(*device, *trial.operation, trial.device_x, trial.device_y);
        backward(*device, *trial.operation, trial.device_x, trial.device_y, on_device(*device, grad_y), grad_x,
                 grad_parameters);
        return Gradients{from_device(*device, grad_x), from_device(*device, grad_parameters)};
    };
    ConvolutionShape convolution = odd;
    convolution.precision = Precision::float16;
    convolution.activation = Activation::none;
    const LinearShape linear{.batch = 3, .channels = 50, .units = 60, .precision = Precision::float16};
    const auto is_zero = [](float value) { return value == 0; };
    const auto is_finite = [](float value) { return std::isfinite(value); };
    for (const Gradients& grads : {grads_of(convolution, 1e6), grads_of(linear, 1e6)}) {
        CHECK(std::none_of(grads.x.begin(), grads.x.end(), is_finite));
        CHECK(std::isfinite(grads.parameters.back()));  // a bias' gradient is a float32 sum
    }
    for (const Gradients& grads : {grads_of(convolution, 1e-7), grads_of(linear, 1e-7)}) {
        CHECK(std::all_of(grads.x.begin(), grads.x.end(), is_finite));
        CHECK(!std::all_of(grads.x.begin(), grads.x.end(), is_zero));
    }
    for (const Gradients& grads : {grads_of(convolution, 1e-8), grads_of(linear, 1e-8)}) {
        CHECK(std::all_of(grads.x.begin(), grads.x.end(), is_zero));
    }
    CHECK(std::isfinite(grads_of(convolution, 1e6).parameters[0]));  // float32
    CHECK(!std::isfinite(grads_of(linear, 1e6).parameters[0]));
    CHECK(grads_of(linear, 1e-8).parameters[0] == 0);
}

TEST_CASE("even kernels with asymmetric padding use cuDNN on padded images, for every kind of engine") {
    const auto any = [](const CudnnRequest&) { return true; };
    check_choice(even, "cudnn:nhwc float32, padded images, fused", any);
    check_choice(even, "cudnn:nhwc float32, padded images (",
                 [](const CudnnRequest& request) { return !request.is_fused; });
    check_choice(even, "cudnn:nhwc float32, padded images, channels 4->12, fused",
                 [](const CudnnRequest& request) { return request.shape.channels_in % 4 == 0; });
    for (const auto& [kernel, stride, before, after] :
         {std::tuple{2, 1, 0, 1}, {2, 2, 0, 1}, {4, 3, 1, 2}, {3, 2, 2, 0}, {5, 1, 0, 4}}) {
        ConvolutionShape shape = even;
        shape.kernel = kernel;
        shape.stride = stride;
        shape.padding_before = before;
        shape.padding_after = after;
        const auto device = make_device();
        const std::string implementation = device->make(shape)->implementation();
        CAPTURE(implementation);
        check(*device, shape);
        for (const Narrow& narrow : narrow_ones) {
            shape.precision = narrow.precision;
            CHECK(device->make(shape)->implementation().find(narrow.name + ", padded images") != std::string::npos);
            const Trial<ConvolutionShape> trial(*device, shape, 1);
            forward(trial.device, *trial.operation, trial.device_x, trial.device_y);
            CHECK(difference(from_device(*device, trial.device_y), trial.expected) < narrow.tolerance);
        }
    }
}

TEST_CASE("in every precision, engines with narrowed inputs, low-precision sums or large workspaces are not used") {
    const std::vector<rehearsal::Engine> engines{{"narrows", {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}},
                                                 {"sums low", {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}},
                                                 {"greedy", {}, std::int64_t{65} << 20},
                                                 {"varies", {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
                                                 {"tensor cores", {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}},
                                                 {"winograd", {CUDNN_NUMERICAL_NOTE_WINOGRAD}},
                                                 {"plain", {}}};
    rehearsal::set_engines(engines);
    for (const auto& [precision, deterministic, chosen] : {std::tuple{Precision::float32, true, "(plain)"},
                                                           {Precision::float32, false, "(varies)"},
                                                           {Precision::tf32, true, "(tensor cores)"},
                                                           {Precision::tf32, false, "(varies)"},
                                                           {Precision::float16, true, "(tensor cores)"},
                                                           {Precision::float16, false, "(varies)"},
                                                           {Precision::bfloat16, true, "(tensor cores)"},
                                                           {Precision::bfloat16, false, "(varies)"}}) {
        ConvolutionShape shape = odd;
        shape.precision = precision;
        shape.deterministic = deterministic;
        const std::string implementation = make_device()->make(shape)->implementation();
        CAPTURE(implementation);
        CHECK(implementation.find(chosen) != std::string::npos);
    }
    rehearsal::set_engines({{"winograd", {CUDNN_NUMERICAL_NOTE_WINOGRAD}}, {"plain", {}}});
    for (const auto& [precision, chosen] : {std::pair{Precision::float32, "(plain)"},
                                            {Precision::tf32, "(winograd)"},
                                            {Precision::bfloat16, "(winograd)"},
                                            {Precision::float16, "(plain)"}}) {
        ConvolutionShape shape = odd;
        shape.precision = precision;
        CHECK(make_device()->make(shape)->implementation().find(chosen) != std::string::npos);
    }
    rehearsal::set_engines({rehearsal::Engine{}});
}

TEST_CASE("unused plans are dropped above a maximum number; plans in use are kept") {
    const auto device = make_device();
    const int before = rehearsal::plans_kept();
    const auto in_use = device->make(odd);
    for (std::int64_t batch = 10; batch < 400; ++batch) {
        ConvolutionShape shape = odd;
        shape.batch = batch;
        static_cast<void>(device->scratch_bytes(shape));
    }

    CHECK(rehearsal::plans_kept() - before <= 3 * 128);
    const int made = rehearsal::plans_made();
    static_cast<void>(device->make(odd));
    CHECK(rehearsal::plans_made() == made);
}

TEST_CASE("a model's memory includes the scratch memory of its largest operation, with workspace") {
    const std::int64_t workspace = std::int64_t{5} << 20;
    rehearsal::set_engines({{"needs some", {}, workspace}});
    const auto device = make_device();
    const std::size_t before = rehearsal::device_bytes_in_use();
    const auto operation = device->make(odd);

    CHECK(device->scratch_bytes(odd) >= workspace);
    const auto taken = static_cast<std::int64_t>(rehearsal::device_bytes_in_use() - before);
    CHECK(taken >= device->scratch_bytes(odd));
    CHECK(taken < device->scratch_bytes(odd) + 10'000);  // with the packed weights
    CHECK(device->scratch_bytes(LinearShape{.batch = 3, .channels = 50, .units = 60}) > 0);
    rehearsal::set_engines({rehearsal::Engine{}});
}

TEST_CASE("a shape is planned once for all operations of a device, on all streams") {
    const auto device = make_device();
    const auto beside = device->new_stream();
    const int before = rehearsal::plans_made();

    const auto first = device->make(odd);
    const auto second = device->make(odd);
    const auto third = beside->make(odd);

    CHECK(rehearsal::plans_made() == before + 3);
}

TEST_CASE("if cuBLASLt has no algorithm for a linear layer, the error names the product") {
    rehearsal::offer_products(false);
    const LinearShape shape{.batch = 3, .height = 4, .width = 5, .channels = 3, .units = 7};
    CHECK_THROWS_WITH_AS(make_device()->make(shape), doctest::Contains("the product (7 x 60) · (60 x 3)"), ApiError);
    rehearsal::offer_products(true);
}
