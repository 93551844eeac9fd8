#pragma once

#include "finch/base/random.hpp"
#include "finch/nn/initialization.hpp"
#include "finch/train/training.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Small data sets, a small network, and the other objects that a training needs.
namespace finch::test {

inline constexpr std::int64_t image_size = 6;
inline constexpr std::int64_t classes = 3;

/// Returns noise images. The row of bright pixels determines the class.
inline data::Datasets bright_rows(std::int64_t samples) {
    data::Dataset set{.height = image_size, .width = image_size, .channels = 1, .classes = classes};
    RandomStream random(11, Purpose::test);
    for (std::int64_t sample = 0; sample < samples; ++sample) {
        const auto label = static_cast<std::int64_t>(random.below(classes));
        set.labels.own().push_back(static_cast<std::int32_t>(label));
        for (std::int64_t pixel = 0; pixel < image_size * image_size; ++pixel) {
            const bool bright = pixel / image_size == 2 * label;
            set.pixels.own().push_back(static_cast<std::uint8_t>(random.below(120) + (bright ? 100 : 0)));
        }
    }
    data::Datasets sets;
    sets.training = std::move(set);
    return sets;
}

/// Returns the samples that a training with this recipe validates on.
inline data::Dataset validation_set(const train::Recipe& recipe, const data::Datasets& datasets) {
    data::Dataset validation = datasets.training;
    auto& pixels = validation.pixels.own();
    auto& labels = validation.labels.own();
    pixels.clear();
    labels.clear();
    for (const std::int64_t index : data::split(recipe.data, datasets.training, recipe.seed).validation) {
        const auto first = datasets.training.pixels.begin() + index * image_size * image_size;
        pixels.insert(pixels.end(), first, first + image_size * image_size);
        labels.push_back(datasets.training.labels[static_cast<std::size_t>(index)]);
    }
    return validation;
}

/// Returns a recipe with a convolution, a pooling layer and a linear layer for the images of bright_rows().
inline train::Recipe small_recipe(std::int64_t validation_samples) {
    train::Recipe recipe;
    recipe.seed = 5;
    recipe.individual = 77;
    recipe.data.validation_samples = validation_samples;
    recipe.data.mean = {0.3};
    recipe.data.deviation = {0.25};
    recipe.training.epochs = 3;
    recipe.training.batch_size = 8;
    recipe.training.learning_rate = 0.05;
    recipe.training.optimizer = backend::Sgd{.momentum = 0.9};
    recipe.model = {nn::ConvLayer{.channels = 4, .kernel = 3, .activation = backend::Activation::relu}, nn::PoolLayer{},
                    nn::FlattenLayer{}, nn::LinearLayer{}};
    return recipe;
}

/// Returns whether this processor can compute in `precision`.
inline bool supports(train::Precision precision) {
    return backend::make_cpu_device(1)->supports(precision);
}

/// Returns a model with every kind of layer except pooling. Its steps sum statistics over the ranks and draw random
/// numbers.
inline nn::ModelSpec residual_model() {
    return {
        nn::ConvLayer{.channels = 4, .kernel = 3},
        nn::BatchNormLayer{.activation = backend::Activation::relu},
        nn::BlockLayer{.layers = {nn::ConvLayer{.channels = 6, .kernel = 3}, nn::BatchNormLayer{}},
                       .activation = backend::Activation::relu},
        nn::DropoutLayer{.rate = 0.25},
        nn::ConvLayer{.channels = 6, .kernel = 3, .stride = 2, .groups = 0},
        nn::LayerNormLayer{.activation = backend::Activation::silu},
        nn::BlockLayer{.layers = {nn::ConvLayer{.channels = 2, .kernel = 1, .activation = backend::Activation::gelu}},
                       .join = nn::Join::concatenate},
        nn::FlattenLayer{},
        nn::LinearLayer{}};
}

/// A training on this rank of `group`, and all objects that must outlive the training.
class Run {
public:
    Run(const comm::Group& group, const data::Datasets& datasets, const train::Recipe& recipe,
        std::unique_ptr<backend::Device> device = backend::make_cpu_device(1))
        : group_(group), device_(std::move(device)), training_(*device_, group_, *all_reduce_, datasets, recipe) {}

    train::Training* operator->() { return &training_; }
    /// Collective over the group. Trains to the end.
    train::State finish() {
        while (training_.advance(1000) == train::State::running) {
        }
        return training_.state();
    }

private:
    const comm::Group& group_;
    std::unique_ptr<backend::Device> device_;
    std::unique_ptr<comm::AllReduce> all_reduce_ = comm::make_mpi_all_reduce(group_, 30.0);
    train::Training training_;
};

/// Collective over the world. Returns the group of the first `ranks` ranks, or on other ranks the group of the others.
inline comm::Group first_ranks(int ranks) {
    const int rank = comm::rank_of(MPI_COMM_WORLD);
    return {MPI_COMM_WORLD, rank < ranks ? 0 : 1, rank};
}
/// Collective over the world. Returns a group with this rank only.
inline comm::Group alone() {
    return {MPI_COMM_WORLD, comm::rank_of(MPI_COMM_WORLD), 0};
}

/// Returns all float tensors of `arrays` with names that begin with `prefix`, concatenated.
inline std::vector<float> tensors(const NamedArrays& arrays, const std::string& prefix) {
    std::vector<float> values;
    for (const NamedArray& array : arrays) {
        const auto* part = std::get_if<std::vector<float>>(&array.values);
        if (array.name.starts_with(prefix) && part != nullptr) {
            values.insert(values.end(), part->begin(), part->end());
        }
    }
    return values;
}

/// Returns the model's tensors of a snapshot, without the prefix of their names.
inline NamedArrays weights_of(const NamedArrays& snapshot) {
    NamedArrays weights;
    for (NamedArray array : snapshot) {
        if (array.name.starts_with("weights/")) {
            array.name.erase(0, std::string("weights/").size());
            weights.push_back(std::move(array));
        }
    }
    return weights;
}

inline std::vector<float> arena_of(const nn::ModelPlan& plan, const NamedArrays& snapshot) {
    return nn::read_tensors(plan, snapshot, "weights/").parameters;
}

/// Sets the column of seconds to 0 in all rows of a table.
inline void clear_seconds(NamedArray& table, std::size_t column) {
    auto& rows = std::get<std::vector<double>>(table.values);
    for (std::size_t at = column; at < rows.size(); at += static_cast<std::size_t>(table.shape.at(1))) {
        rows[at] = 0;
    }
}

/// Returns whether two snapshots have the same bits, except for times in seconds.
inline bool equal_but_for_seconds(NamedArrays a, NamedArrays b) {
    for (NamedArrays* arrays : {&a, &b}) {
        for (NamedArray& array : *arrays) {
            if (array.name == "partial_sums") {
                clear_seconds(array, 6);
            } else if (array.name == "curve") {
                std::size_t column = 0;
                for_each_field<Epoch>([&](const auto& field) {
                    if (field.name == std::string_view("seconds")) {
                        clear_seconds(array, column);
                    }
                    ++column;
                });
            }
        }
    }
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const NamedArray& one, const NamedArray& other) {
        return one.name == other.name && one.shape == other.shape && one.values == other.values;
    });
}

/// Returns the largest difference, relative to b's largest entry.
inline double difference(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0;
    double apart = a.size() == b.size() ? 0 : HUGE_VAL;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(b[i])));
        apart = std::max(apart, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    }
    return apart / largest;
}

/// Returns the snapshot of a training on one rank after `steps` batches.
inline NamedArrays on_one_rank(const data::Datasets& datasets, const train::Recipe& recipe, std::int64_t steps) {
    const comm::Group group = alone();
    Run run(group, datasets, recipe);
    (void)run->advance(steps);
    return run->snapshot();
}

/// Compares the weights' changes from `start` to `a` and from `start` to `b`. Returns the largest difference, relative
/// to the largest change of the same tensor.
inline double move_difference(const NamedArrays& start, const NamedArrays& a, const NamedArrays& b) {
    double largest = 0;
    for (const NamedArray& array : start) {
        if (!array.name.starts_with("weights/")) {
            continue;
        }
        const auto& from = std::get<std::vector<float>>(array.values);
        std::vector<float> move_a = tensors(a, array.name);
        std::vector<float> move_b = tensors(b, array.name);
        for (std::size_t i = 0; i < from.size(); ++i) {
            move_a[i] -= from[i];
            move_b[i] -= from[i];
        }
        largest = std::max(largest, difference(move_a, move_b));
    }
    return largest;
}

/// Returns a recipe with SGD and a learning rate of 1000. After one step the gradient dominates the weights, so tests
/// can read the gradient from the weights with little rounding.
inline train::Recipe gradient_recipe(std::int64_t batch) {
    train::Recipe recipe = small_recipe(20);
    recipe.training.batch_size = batch;
    recipe.training.optimizer = backend::Sgd{};
    recipe.training.learning_rate = 1000;
    return recipe;
}

}  // namespace finch::test
