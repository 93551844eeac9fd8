#pragma once

#include "train/world.hpp"

#include <algorithm>
#include <variant>
#include <vector>

/// Trainings for comparisons between devices and between numbers of ranks.
namespace finch::test {

/// Returns a recipe with a learning rate that does not amplify rounding.
inline train::Recipe calm_recipe() {
    train::Recipe recipe = small_recipe(20);
    recipe.training.optimizer = backend::Sgd{};
    recipe.training.learning_rate = 0.01;
    return recipe;
}

/// Returns a recipe of a residual network with batch normalisation and dropout.
inline train::Recipe residual_recipe() {
    using backend::Activation;
    train::Recipe recipe = calm_recipe();
    recipe.model = {
        nn::ConvLayer{.channels = 4},
        nn::BatchNormLayer{.activation = Activation::relu},
        nn::BlockLayer{.layers = {nn::ConvLayer{.channels = 6}, nn::BatchNormLayer{.activation = Activation::relu},
                                  nn::ConvLayer{.channels = 6}, nn::BatchNormLayer{}},
                       .activation = Activation::relu},
        nn::DropoutLayer{.rate = 0.3},
        nn::FlattenLayer{},
        nn::LinearLayer{}};
    return recipe;
}

/// Returns a recipe whose activations are stored as bfloat16, with all kinds of gradients: summed over two parts of the
/// batch and clipped, with averaged weights and with weight decay.
inline train::Recipe bfloat16_recipe() {
    using backend::Activation;
    train::Recipe recipe = calm_recipe();
    recipe.model = {
        nn::ConvLayer{.channels = 24},
        nn::BatchNormLayer{.activation = Activation::relu},
        nn::BlockLayer{.layers = {nn::ConvLayer{.channels = 32}, nn::BatchNormLayer{.activation = Activation::relu},
                                  nn::ConvLayer{.channels = 32}, nn::BatchNormLayer{}},
                       .activation = Activation::relu},
        nn::GlobalAveragePoolLayer{},
        nn::FlattenLayer{},
        nn::LinearLayer{}};
    recipe.training.precision = train::Precision::bfloat16;
    recipe.training.optimizer = backend::Sgd{.momentum = 0.9, .weight_decay = 1e-3};
    recipe.training.average = 0.8;
    recipe.training.clip_norm = 1;
    recipe.training.micro_batches = 2;
    return recipe;
}

/// Returns the weights and running statistics after a whole training, concatenated.
inline std::vector<float> trained_weights(backend::Device& device, const comm::Group& group,
                                          comm::AllReduce& all_reduce, const data::Datasets& datasets,
                                          const train::Recipe& recipe, std::int64_t steps = 5) {
    train::Training training(device, group, all_reduce, datasets, recipe);
    while (training.advance(steps) == train::State::running) {
    }
    CHECK(training.state() == train::State::finished);
    std::vector<float> values;
    for (const NamedArray& array : training.snapshot()) {
        if (const auto* part = std::get_if<std::vector<float>>(&array.values);
            part != nullptr && array.name.starts_with("weights/")) {
            values.insert(values.end(), part->begin(), part->end());
        }
    }
    return values;
}

/// The result of a float16 training that starts from `snapshot` with a loss scale at which gradients overflow. Skipped
/// steps reduce the scale. The snapshot may be from any device. The training uses cuDNN's engines, which round to
/// float16.
struct Overflowing {
    NamedArrays snapshot;
    backend::LossScale scale;
};
inline train::Recipe float16_recipe() {
    train::Recipe recipe = residual_recipe();
    recipe.training.precision = train::Precision::float16;
    // Adam would amplify the noise in the gradients of biases before batch_norm.
    recipe.training.optimizer = backend::Sgd{.momentum = 0.9};
    recipe.training.average = 0.8;
    recipe.training.clip_norm = 1;
    recipe.training.micro_batches = 2;
    return recipe;
}
inline NamedArrays with_large_scale(NamedArrays snapshot) {
    for (NamedArray& array : snapshot) {
        if (array.name == "loss_scale/scale") {
            array.values = std::vector{0x1p22};
        }
    }
    return snapshot;
}
inline Overflowing trained_in_float16(backend::Device& device, const comm::Group& group, comm::AllReduce& all_reduce,
                                      const data::Datasets& datasets, const NamedArrays& snapshot,
                                      std::int64_t steps = 5) {
    train::Training training(device, group, all_reduce, datasets, float16_recipe());
    training.restore(snapshot);
    while (training.advance(steps) == train::State::running) {
    }
    CHECK(training.state() == train::State::finished);
    return {training.snapshot(), training.loss_scale().value()};
}

/// Returns whether `mine` has the same bits on all ranks.
inline bool same_on_all(const comm::Group& group, const std::vector<float>& mine) {
    const std::vector<double> values(mine.begin(), mine.end());
    const std::vector<double> all = group.gather(values);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i] != values[i % values.size()]) {
            return false;
        }
    }
    return all.size() == values.size() * static_cast<std::size_t>(group.size());
}

}  // namespace finch::test
