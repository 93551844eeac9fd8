#pragma once

#include "cudnn_plan.hpp"

#include <functional>

namespace finch::rehearsal {

/// Which requests the stand-in of cuDNN has an engine for; all, until this is called. It computes them plainly.
void offer_engines(std::function<bool(const backend::cuda::CudnnRequest&)> offered);
/// How many plans have been made.
[[nodiscard]] int plans_made();

/// Whether the stand-in of cuBLASLt has an algorithm; it has, until this is called.
void offer_products(bool offered);

}  // namespace finch::rehearsal
