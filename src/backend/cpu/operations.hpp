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
};

/// The operation of a shape; each file of this folder that implements one specialises it.
template <class Shape>
[[nodiscard]] std::unique_ptr<Operation> make(const Library& library, Plans& plans, const Shape& shape);

}  // namespace finch::backend::cpu
