#include "watch.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace finch::train {
namespace {

constexpr double unknown_norm = std::numeric_limits<double>::quiet_NaN();

const std::vector<double>& watched_values(const NamedArray& array) {
    const auto* values = std::get_if<std::vector<double>>(&array.values);
    if (values == nullptr) {
        throw FileError("the snapshot's array " + array.name + " has no numbers of type double");
    }
    return *values;
}

}  // namespace

Watch::Watch(const nn::ModelPlan& plan) {
    for (const nn::TensorInfo& tensor : plan.tensors) {
        if (!tensor.learns) {
            continue;
        }
        const std::string layer = tensor.name.substr(0, tensor.name.rfind('.'));
        if (layers_.empty() || layers_.back().name != layer) {
            layers_.push_back({.name = layer, .tensors = {}});
        }
        layers_.back().tensors.push_back(
            {static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(tensor.size)});
    }
    grad_norms_.assign(layers_.size(), unknown_norm);
}

std::vector<double> Watch::norms(std::span<const float> arena) const {
    std::vector<double> norms;
    for (const Layer& layer : layers_) {
        double sum = 0;
        for (const Range& tensor : layer.tensors) {
            for (const float value : arena.subspan(tensor.offset, tensor.size)) {
                sum += static_cast<double>(value) * static_cast<double>(value);
            }
        }
        norms.push_back(std::sqrt(sum));
    }
    return norms;
}

void Watch::end_steps(std::span<const float> grads) {
    grad_norms_ = norms(grads);
}

void Watch::end_epoch(std::int32_t epoch, std::span<const float> parameters) {
    const std::vector<double> weight_norms = norms(parameters);
    rows_.push_back(epoch);
    rows_.insert(rows_.end(), weight_norms.begin(), weight_norms.end());
    rows_.insert(rows_.end(), grad_norms_.begin(), grad_norms_.end());
    grad_norms_.assign(layers_.size(), unknown_norm);
}

std::vector<Metric> Watch::metrics() const {
    std::vector<Metric> metrics;
    for (std::size_t row = 0; row < rows_.size(); row += columns()) {
        const auto epoch = static_cast<std::int32_t>(rows_[row]);
        for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
            metrics.push_back({epoch, Metric::weight_norm + layers_[layer].name, rows_[row + 1 + layer]});
            metrics.push_back(
                {epoch, Metric::grad_norm + layers_[layer].name, rows_[row + 1 + layers_.size() + layer]});
        }
    }
    return metrics;
}

NamedArrays Watch::state() const {
    NamedArrays arrays{
        {.name = "watch/grad_norms", .shape = {static_cast<std::int64_t>(grad_norms_.size())}, .values = grad_norms_}};
    if (!rows_.empty()) {
        arrays.push_back(
            {.name = "watch/epochs",
             .shape = {static_cast<std::int64_t>(rows_.size() / columns()), static_cast<std::int64_t>(columns())},
             .values = rows_});
    }
    return arrays;
}

void Watch::set_state(const NamedArrays& arrays) {
    std::vector<double> grad_norms(layers_.size(), unknown_norm);
    std::vector<double> rows;
    for (const NamedArray& array : arrays) {
        if (array.name == "watch/grad_norms") {
            grad_norms = watched_values(array);
        } else if (array.name == "watch/epochs") {
            rows = watched_values(array);
        }
    }
    bool is_valid = grad_norms.size() == layers_.size() && rows.size() % columns() == 0;
    for (std::size_t row = 0; is_valid && row < rows.size(); row += columns()) {
        is_valid = rows[row] >= 1 && rows[row] <= std::numeric_limits<std::int32_t>::max();
    }
    if (!is_valid) {
        throw FileError("the snapshot's arrays watch/grad_norms and watch/epochs do not fit the model");
    }
    grad_norms_ = std::move(grad_norms);
    rows_ = std::move(rows);
}

}  // namespace finch::train
