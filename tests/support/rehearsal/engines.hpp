#pragma once

#include "cudnn_plan.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace finch::rehearsal {

/// Sets for which requests the cuDNN stand-in has an engine, among those for which cuDNN has one. By default it has one
/// for all of them.
void offer_engines(std::function<bool(const backend::cuda::CudnnRequest&)> offered);
/// The properties that an engine of the stand-in reports.
struct Engine {
    std::string name = "stand-in";
    std::vector<cudnnBackendNumericalNote_t> notes = {};
    std::int64_t workspace_bytes = 1000;
    std::int64_t channels_unit = 1;  ///< the engine needs channels in multiples of this
};
/// Sets the engines for all requests, best first. The first engine that is not barred is used. By default there is
/// one engine.
void set_engines(std::vector<Engine> engines);
/// Returns the requests that got a plan since the last set_engines() or offer_engines().
[[nodiscard]] const std::vector<backend::cuda::CudnnRequest>& requests();
/// plans_made() returns the number of created plans, and plans_kept() the number of plans that still exist.
[[nodiscard]] int plans_made();
[[nodiscard]] int plans_kept();

/// Sets whether the cuBLASLt stand-in has an algorithm. By default it has one.
void offer_products(bool offered);

}  // namespace finch::rehearsal
