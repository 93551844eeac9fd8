#include "finch/nn/model.hpp"

#include "finch/base/error.hpp"

#include "trial.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::nn;
using backend::Activation;
using backend::Pooling;
using test::check_slopes;
using test::Trial;

namespace {

constexpr std::int64_t batch = 6;
constexpr std::int64_t classes = 5;

/// Returns a model with every kind of layer and odd sizes. It starts with a pooling layer, so the first layer has no
/// parameters.
ModelPlan every_layer(Activation activation) {
    return plan_model(
        {PoolLayer{.kind = Pooling::average, .kernel = 2, .stride = 1},
         ConvLayer{.channels = 7, .kernel = 3, .activation = activation},
         PoolLayer{.kind = Pooling::max, .kernel = 3, .stride = 2, .padding = 1},
         ConvLayer{.channels = 5, .kernel = 2, .activation = Activation::none}, ActivationLayer{Activation::tanh},
         FlattenLayer{}, LinearLayer{.units = 11, .activation = activation}, LinearLayer{}},
        {12, 10, 3}, classes, batch);
}

}  // namespace

TEST_CASE("backward: the ready ranges cover the arena in order, without gaps, and are final") {
    test::OneRank one_rank;
    for (const bool has_group : {false, true}) {
        Trial trial(every_layer(Activation::relu), batch);
        trial.group = has_group ? &one_rank : nullptr;

        (void)trial.loss();

        REQUIRE(trial.ranges.size() == (has_group ? 4 : 1));  // one rank alone announces all gradients together
        std::int64_t at = 0;
        for (const auto& [begin, end] : trial.ranges) {
            CHECK(begin == at);
            CHECK(end > begin);
            at = end;
        }
        CHECK(at == trial.model.plan().parameters);
        CHECK(trial.grads_when_ready == trial.grads());
    }
}

TEST_CASE("backward: every tensor's gradient matches finite differences of the loss") {
    for (const Activation activation : {Activation::relu, Activation::sigmoid, Activation::tanh}) {
        Trial trial(every_layer(activation), batch);

        check_slopes(trial, 2e-4, 5e-4);
    }
}

TEST_CASE("tensors: read_tensors() restores the output of name_tensors() with the same bits") {
    Trial trial(every_layer(Activation::relu), batch);
    const double loss = trial.loss();
    const NamedArrays tensors = name_tensors(trial.model.plan(), trial.model.state());
    std::fill(trial.state.parameters.begin(), trial.state.parameters.end(), 0.0F);
    CHECK(trial.loss() != loss);

    trial.state = read_tensors(trial.model.plan(), tensors);

    CHECK(trial.loss() == loss);
    CHECK(tensors.size() == 8);
    CHECK(tensors[0].name == "1.weight");
    CHECK(tensors[0].shape == std::vector<std::int64_t>{7, 3, 3, 3});
}

TEST_CASE("tensors: a missing tensor and a wrong shape are rejected; the message names the tensor") {
    Trial trial(every_layer(Activation::relu), batch);
    NamedArrays tensors = name_tensors(trial.model.plan(), trial.state);
    tensors[0].shape = {3, 7, 3, 3};

    CHECK_THROWS_WITH_AS((void)read_tensors(trial.model.plan(), tensors), doctest::Contains("1.weight"), FileError);
    tensors.erase(tensors.begin());
    CHECK_THROWS_AS((void)read_tensors(trial.model.plan(), tensors), FileError);
}
