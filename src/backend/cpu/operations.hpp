#pragma once

#include "library.hpp"

#include <memory>

namespace finch::backend::cpu {

/// What a shape needs of oneDNN: primitives, layouts and the copies between them. Shared; holds no parameters.
struct ConvolutionPlan;
struct LinearPlan;
struct PoolingPlan;

struct Plans {
    PlanCache<ConvolutionShape, ConvolutionPlan> convolutions;
    PlanCache<LinearShape, LinearPlan> linears;
    PlanCache<PoolingShape, PoolingPlan> poolings;
};

[[nodiscard]] std::unique_ptr<Operation> make_convolution(const Library& library, Plans& plans,
                                                          const ConvolutionShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_linear(const Library& library, Plans& plans, const LinearShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_pooling(const Library& library, Plans& plans, const PoolingShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_activation(const ActivationShape& shape);

}  // namespace finch::backend::cpu
