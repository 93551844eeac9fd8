#pragma once

#include "library.hpp"

#include <memory>

namespace finch::backend::cpu {

/// Plans: the oneDNN primitives, layouts and reorders of a shape. Operations share the plans. The plans hold no
/// parameters.
struct ConvolutionPlan;
struct LinearPlan;
struct ActivationPlan;

struct Plans {
    PlanCache<ConvolutionShape, ConvolutionPlan> convolutions;
    PlanCache<LinearShape, LinearPlan> linears;
    PlanCache<ActivationShape, ActivationPlan> activations;
    Scratch scratch;  ///< shared by all operations
};

/// Makes the operation of a shape. Each file of this folder that implements a shape specialises this template.
template <class Shape>
[[nodiscard]] std::unique_ptr<Operation> make(const Library& library, Plans& plans, const Shape& shape);

/// Returns the maximum number of scratch bytes that an operation of this shape uses.
template <class Shape>
[[nodiscard]] std::int64_t scratch_bytes(const Shape& /*shape*/) {
    return 0;
}
template <>
[[nodiscard]] std::int64_t scratch_bytes(const ConvolutionShape& shape);
template <>
[[nodiscard]] std::int64_t scratch_bytes(const LinearShape& shape);

/// Returns the bytes that an operation of this shape keeps per thread, beyond its weights, packed twice, and their
/// gradient in their canonical size.
[[nodiscard]] std::int64_t kept_bytes(const ConvolutionShape& shape);

}  // namespace finch::backend::cpu
