#pragma once

#include "cudnn_plan.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace finch::rehearsal {

/// Which requests the stand-in of cuDNN has an engine for; all, until this is called. It computes them plainly.
void offer_engines(std::function<bool(const backend::cuda::CudnnRequest&)> offered);
/// An engine of the stand-in: what it says of itself.
struct Engine {
    std::string name = "stand-in";
    std::vector<backend::cuda::EngineNote> notes = {};
    std::int64_t workspace_bytes = 1000;
};
/// The engines for each request, the best first; of those that are not barred the first is taken. One, until this is
/// called.
void set_engines(std::vector<Engine> engines);
/// What cuDNN was asked for and has planned, since the last set_engines() or offer_engines().
[[nodiscard]] const std::vector<backend::cuda::CudnnRequest>& requests();
/// How many plans have been made, and how many of them somebody still has.
[[nodiscard]] int plans_made();
[[nodiscard]] int plans_kept();

/// Whether the stand-in of cuBLASLt has an algorithm; it has, until this is called.
void offer_products(bool offered);

}  // namespace finch::rehearsal
