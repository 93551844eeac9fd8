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

[[nodiscard]] std::unique_ptr<Operation> make(const Library& library, Plans& plans, const ConvolutionShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make(const Library& library, Plans& plans, const LinearShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make(const Library& library, Plans& plans, const PoolingShape& shape);
/// Loops of Finch's own.
[[nodiscard]] std::unique_ptr<Operation> make(const ActivationShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make(const AddShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make(const BatchNormShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make(const DropoutShape& shape);

}  // namespace finch::backend::cpu
