#pragma once

#include "library.hpp"

#include <memory>

namespace finch::backend::cpu {

/// What a shape needs of oneDNN: primitives, layouts and the copies between them. Shared; holds no parameters.
struct ConvolutionPlan;
struct LinearPlan;
struct PoolingPlan;
struct ActivationPlan;

struct Plans {
    PlanCache<ConvolutionShape, ConvolutionPlan> convolutions;
    PlanCache<LinearShape, LinearPlan> linears;
    PlanCache<PoolingShape, PoolingPlan> poolings;
    PlanCache<ActivationShape, ActivationPlan> activations;
    Scratch scratch;  ///< of all their operations
};

/// The operation of a shape; each file of this folder that implements one specialises it.
template <class Shape>
[[nodiscard]] std::unique_ptr<Operation> make(const Library& library, Plans& plans, const Shape& shape);

/// Bytes that it takes of the scratch memory, at most.
template <class Shape>
[[nodiscard]] std::int64_t scratch_bytes(const Shape& /*shape*/) {
    return 0;
}
template <>
[[nodiscard]] std::int64_t scratch_bytes(const ConvolutionShape& shape);
template <>
[[nodiscard]] std::int64_t scratch_bytes(const LinearShape& shape);

}  // namespace finch::backend::cpu
