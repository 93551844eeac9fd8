// Tests of the number of kernels and copies in a training step of the tutorial's network. For small networks a GPU
// spends most time launching kernels and copies (about 1.5 µs each).
#include "finch/backend/cuda.hpp"
#include "finch/nn/model.hpp"
#include "finch/nn/optimizer.hpp"

#include "nn/trial.hpp"
#include "support/rehearsal/control.hpp"

#include <doctest/doctest.h>

using namespace finch;

namespace {

/// Returns the number of nodes in the graph of one step on `device`.
std::size_t nodes(const nn::ModelPlan& plan, const std::unique_ptr<backend::Device>& device,
                  backend::GroupSum* group = nullptr) {
    const std::int64_t batch = plan.batch;
    nn::Model model(*device, plan);
    nn::Optimizer optimizer(*device, backend::Adadelta{}, model.plan());
    const std::vector<std::uint8_t> pixels(static_cast<std::size_t>(plan.input.size()));
    const std::vector<std::int32_t> labels(1);
    const auto context =
        device->make_step_context({.pixels = pixels, .labels = labels, .pixels_per_image = plan.input.size()}, batch);
    model.pack();
    const backend::Pass pass{.step = *context, .group = group};
    const auto step = device->capture(
        [&] {
            device->next_step(*context);
            device->load_batch(*context, model.input());
            model.forward(pass);
            device->softmax_cross_entropy(*context, model.logits(), 10, model.grad_logits());
            model.backward(pass, [](std::int64_t, std::int64_t) {});
            optimizer.apply(*context, model.parameters(), model.grads());
            model.pack();
        },
        backend::CaptureAs::graph);
    const std::vector<backend::StepScalars> steps(2, {.grad_scale = 1});
    context->fill(std::vector<std::int64_t>(static_cast<std::size_t>(2 * batch)), steps);
    step->run(2);
    device->synchronize();
    return rehearsal::nodes_of_last_graph();
}

std::size_t nodes(std::int64_t layers, std::int64_t batch, backend::CudaPath path) {
    rehearsal::reset();
    return nodes(nn::plan_model({nn::ConvLayer{.activation = backend::Activation::relu, .repeat = layers},
                                 nn::FlattenLayer{}, nn::LinearLayer{}},
                                {28, 28, 1}, 10, batch),
                 backend::make_cuda_device(0, path));
}

/// Returns the nodes of one more layer of a wide network, on `device`.
std::size_t nodes_of_wide(const nn::ModelSpec& layer, const std::unique_ptr<backend::Device>& device,
                          backend::GroupSum* group = nullptr,
                          backend::Precision precision = backend::Precision::bfloat16) {
    const auto with = [&](std::int64_t layers) {
        nn::ModelSpec spec{nn::BlockLayer{.layers = layer, .residual = false, .repeat = layers},
                           nn::GlobalAveragePoolLayer{}, nn::FlattenLayer{}, nn::LinearLayer{}};
        return nodes(nn::plan_model(spec, {4, 4, 8}, 10, 2, {.precision = precision}), device, group);
    };
    return with(4) - with(3);
}

}  // namespace

TEST_CASE("a step of the tutorial's network with Finch's own kernels has at most 19 nodes") {
    const std::size_t two = nodes(2, 8, backend::CudaPath::automatic);
    const std::size_t six = nodes(6, 8, backend::CudaPath::automatic);
    MESSAGE("nodes of a step, batch 8: " << two << " with 2 layers, " << six << " with 6");

    CHECK((six - two) % 4 == 0);
    CHECK((six - two) / 4 <= 2);  // per layer: forward, both gradients
    CHECK(six <= 19);
}

TEST_CASE("a step of the tutorial's network with the libraries has at most 90 nodes") {
    const std::size_t six = nodes(6, 8, backend::CudaPath::library);
    MESSAGE("nodes of a step, batch 8, 6 layers, by the libraries' stand-ins: " << six);

    CHECK(six <= 90);
}

TEST_CASE("a wide convolution in bfloat16 has at most 5 nodes with relu, with and without batch_norm") {
    const nn::ConvLayer conv{.channels = 24, .kernel = 3};
    const nn::ConvLayer relu{.channels = 24, .kernel = 3, .activation = backend::Activation::relu};
    const nn::ModelSpec layer{conv, nn::BatchNormLayer{.activation = backend::Activation::relu}};
    rehearsal::reset();
    const auto device = backend::make_cuda_device(0);
    const std::size_t normalised = nodes_of_wide(layer, device);
    const std::size_t plain = nodes_of_wide({relu}, device);
    MESSAGE("nodes of a wide layer in bfloat16: " << normalised << " with batch_norm, " << plain << " without");

    // Forward: convolution, normalisation. Backward: normalisation, gradients of the weights and of x. All layers
    // together have one node each to pack weights, to unpack their gradients, and to add the partial sums of biases.
    CHECK(normalised <= 5);
    // Forward: convolution, bias. Backward: gradient of the bias; as above.
    CHECK(plain <= 5);

    // Only one stream of a device launches cooperative kernels; the others need one node more each way.
    CHECK(nodes_of_wide(layer, device->new_stream()) == normalised + 2);
    CHECK(nodes_of_wide(layer, device, nullptr, backend::Precision::tf32) <= 11);
    test::OneRank one_rank;
    CHECK(nodes_of_wide(layer, device, &one_rank) <= 10);  // and the sums over the ranks, which this group does not do
    CHECK(nodes_of_wide(layer, device) == normalised);
    CHECK(nodes_of_wide(layer, backend::make_cuda_device(0, 2)) == normalised + 2);  // shared by two ranks
    const auto other = backend::make_cuda_device(0);
    CHECK(nodes_of_wide(layer, other->new_stream()) == normalised);  // a stream that ends passes the right on
    CHECK(nodes_of_wide(layer, other) == normalised);
}

TEST_CASE("gradients that layers leave to finish_deferred() are final when their range is announced") {
    rehearsal::reset();
    test::OneRank one_rank;
    const nn::ConvLayer layer{.channels = 4, .activation = backend::Activation::tanh, .repeat = 2};
    const nn::ModelPlan plan =
        nn::plan_model({layer, nn::BatchNormLayer{}, layer, nn::FlattenLayer{}, nn::LinearLayer{}}, {6, 7, 1}, 5, 3);
    test::Trial on_cpu(plan, 3);
    (void)on_cpu.loss();
    const std::vector<float> expected = on_cpu.grads();

    for (const auto& [path, has_group] : {std::pair{backend::CudaPath::automatic, false},
                                          {backend::CudaPath::automatic, true},
                                          {backend::CudaPath::library, false},
                                          {backend::CudaPath::library, true}}) {
        test::Trial trial(plan, 3, backend::make_cuda_device(0, path));
        trial.group = has_group ? &one_rank : nullptr;
        (void)trial.loss();

        // With other ranks: linear layer (with two convolutions if it defers), convolutions, normalisation,
        // convolutions.
        CHECK(trial.ranges.size() == (!has_group ? 1 : path == backend::CudaPath::library ? 3 : 4));
        CHECK(trial.ranges.front().first == 0);
        CHECK(trial.ranges.back().second == trial.model.plan().parameters);
        const std::vector<float> grads = trial.grads();
        CHECK(trial.grads_when_ready == grads);
        for (std::size_t i = 0; i < grads.size(); ++i) {
            CHECK(std::abs(grads[i] - expected[i]) < 1e-5F);
        }
    }
}
