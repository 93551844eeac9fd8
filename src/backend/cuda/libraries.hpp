#pragma once

#include "finch/backend/cuda_runtime.hpp"
#include "finch/backend/operation.hpp"

#include <cstdint>
#include <cublasLt.h>
#include <cudnn_graph.h>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <utility>

namespace finch::backend::cuda {

/// Throws ApiError with the text of the call and the library's error message, or std::bad_alloc if memory is exhausted.
void check(cudnnStatus_t code, const char* call, std::source_location where);
void check(cublasStatus_t code, const char* call, std::source_location where);
#define FINCH_CUDNN(call) ::finch::backend::cuda::check((call), #call, std::source_location::current())
#define FINCH_CUBLAS(call) ::finch::backend::cuda::check((call), #call, std::source_location::current())

/// A device for which cuDNN plans without a driver.
struct DescribedDevice {
    std::string properties;  ///< JSON, as cuDNN serialises them: CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION
    int sm_version = 0;      ///< 90 for compute capability 9.0
};

struct CudnnConvolutionPlan;  ///< cudnn_plan.hpp
struct CublasLinearPlan;      ///< cublas_linear.cpp

/// A cache of the plans that a library chose, by shape. All operations of the device share the cache. If the cache is
/// full, the least recently requested plan that no operation uses is removed.
template <class Shape, class Plan>
class PlanCache {
public:
    static constexpr std::size_t most = 128;  ///< unless more are in use

    /// Returns the plan of a shape. If there is none, `make` makes it.
    template <class Make>
    [[nodiscard]] std::shared_ptr<Plan> get(const Shape& shape, Make make) {
        auto found = plans_.find(shape);
        if (found == plans_.end()) {
            found = plans_.emplace(shape, Entry{std::make_shared<Plan>(make())}).first;
        }
        found->second.asked = ++clock_;
        const std::shared_ptr<Plan> plan = found->second.plan;
        while (plans_.size() > most && drop_one()) {
        }
        return plan;
    }

private:
    struct Entry {
        std::shared_ptr<Plan> plan;
        std::uint64_t asked = 0;
    };
    bool drop_one() {
        auto oldest = plans_.end();
        for (auto entry = plans_.begin(); entry != plans_.end(); ++entry) {
            const bool is_idle = entry->second.plan.use_count() == 1;
            if (is_idle && (oldest == plans_.end() || entry->second.asked < oldest->second.asked)) {
                oldest = entry;
            }
        }
        if (oldest == plans_.end()) {
            return false;
        }
        plans_.erase(oldest);
        return true;
    }

    std::map<Shape, Entry> plans_;
    std::uint64_t clock_ = 0;
};

/// The library handles and plans for one device. A handle is created on its first use: creation takes a second and some
/// memory.
class Libraries {
public:
    Libraries() = default;
    /// For plans alone: cuDNN plans for `device`, and nothing runs.
    explicit Libraries(DescribedDevice device) : described_device_(std::move(device)) {}
    [[nodiscard]] cudnnHandle_t cudnn();
    [[nodiscard]] cublasLtHandle_t cublas();
    /// Returns null for a real device.
    [[nodiscard]] const DescribedDevice* described_device() const {
        return described_device_ ? &*described_device_ : nullptr;
    }

private:
    std::optional<DescribedDevice> described_device_;
    UniqueHandle<PointerTraits<cudnnHandle_t, cudnnDestroy>> cudnn_;
    UniqueHandle<PointerTraits<cublasLtHandle_t, cublasLtDestroy>> cublas_;

public:
    // Plans are destroyed before the handles.
    PlanCache<ConvolutionShape, CudnnConvolutionPlan> convolutions;
    PlanCache<LinearShape, CublasLinearPlan> linears;
};

/// Returns the version as a number, such as 91900 for 9.19.0, or 0 if the version cannot be queried.
[[nodiscard]] std::int64_t cudnn_version() noexcept;
[[nodiscard]] std::int64_t cublas_version() noexcept;

}  // namespace finch::backend::cuda
