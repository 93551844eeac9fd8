#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/nn/model.hpp"

#include <algorithm>
#include <cstddef>

namespace finch::nn {
namespace {

template <class Float>
std::span<Float> part(std::span<Float> arena, const TensorInfo& tensor) {
    return arena.subspan(static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(tensor.size));
}

}  // namespace

NamedArrays name_tensors(const ModelPlan& plan, const ModelState& state, const std::string& prefix) {
    NamedArrays arrays;
    for (const TensorInfo& tensor : plan.tensors) {
        const auto values = part(std::span(tensor.learns ? state.parameters : state.buffers), tensor);
        arrays.push_back({.name = prefix + tensor.name,
                          .shape = tensor.shape,
                          .values = std::vector<float>(values.begin(), values.end())});
    }
    for (const std::string& counter : plan.counters) {
        arrays.push_back({.name = prefix + counter, .shape = {}, .values = std::vector<std::int64_t>{state.batches}});
    }
    return arrays;
}

ModelState read_tensors(const ModelPlan& plan, const NamedArrays& arrays, const std::string& prefix) {
    ModelState state{.parameters = std::vector<float>(static_cast<std::size_t>(plan.parameters)),
                     .buffers = std::vector<float>(static_cast<std::size_t>(plan.buffers))};
    for (const TensorInfo& tensor : plan.tensors) {
        const NamedArray& array = find_array(arrays, prefix + tensor.name);
        const auto* values = std::get_if<std::vector<float>>(&array.values);
        if (values == nullptr || array.shape != tensor.shape ||
            values->size() != static_cast<std::size_t>(tensor.size)) {
            throw FileError(fmt::format("the array {} has the shape ({}), but the model's tensor is float32 ({})",
                                        array.name, fmt::join(array.shape, ", "), fmt::join(tensor.shape, ", ")));
        }
        std::copy(values->begin(), values->end(),
                  part(std::span(tensor.learns ? state.parameters : state.buffers), tensor).begin());
    }
    for (const std::string& counter : plan.counters) {
        const NamedArray& array = find_array(arrays, prefix + counter);
        const auto* values = std::get_if<std::vector<std::int64_t>>(&array.values);
        if (values == nullptr || values->size() != 1 || values->front() < 0) {
            throw FileError(fmt::format("the array {} is not a number of batches", array.name));
        }
        state.batches = values->front();
    }
    return state;
}

}  // namespace finch::nn
