#pragma once

#include "finch/backend/cuda_runtime.hpp"
#include "finch/backend/operation.hpp"

#include <cstdint>
#include <cublasLt.h>
#include <cudnn_graph.h>
#include <map>
#include <memory>
#include <source_location>
#include <utility>

namespace finch::backend::cuda {

/// Throws ApiError with the call's text and the library's words; std::bad_alloc where memory is what lacks.
void check(cudnnStatus_t code, const char* call, std::source_location where);
void check(cublasStatus_t code, const char* call, std::source_location where);
#define FINCH_CUDNN(call) ::finch::backend::cuda::check((call), #call, std::source_location::current())
#define FINCH_CUBLAS(call) ::finch::backend::cuda::check((call), #call, std::source_location::current())

struct CudnnTraits {
    using type = cudnnHandle_t;
    static type null() noexcept { return nullptr; }
    static void destroy(type handle) noexcept;
};
struct CublasTraits {
    using type = cublasLtHandle_t;
    static type null() noexcept { return nullptr; }
    static void destroy(type handle) noexcept;
};

/// The libraries' handles for one device, made when they are first asked for: it takes them a second and some memory.
class Libraries {
public:
    [[nodiscard]] cudnnHandle_t cudnn();
    [[nodiscard]] cublasLtHandle_t cublas();

private:
    UniqueHandle<CudnnTraits> cudnn_;
    UniqueHandle<CublasTraits> cublas_;
};

/// 91900 for 9.19.0; 0 if the library cannot be asked.
[[nodiscard]] std::int64_t cudnn_version() noexcept;
[[nodiscard]] std::int64_t cublas_version() noexcept;

struct CudnnConvolutionPlan;  ///< cudnn_plan.hpp
struct CublasLinearPlan;      ///< cublas_linear.cpp

/// What a library has chosen for a shape, once for all operations of the device. Bounded: of the plans that no
/// operation uses, the one that was asked for least lately goes first.
template <class Shape, class Plan>
class PlanCache {
public:
    static constexpr std::size_t most = 128;  ///< unless more are in use

    /// Null if there is none.
    [[nodiscard]] std::shared_ptr<Plan> find(const Shape& shape) {
        const auto found = plans_.find(shape);
        if (found == plans_.end()) {
            return nullptr;
        }
        found->second.asked = ++clock_;
        return found->second.plan;
    }
    void keep(const Shape& shape, std::shared_ptr<Plan> plan) {
        plans_[shape] = {std::move(plan), ++clock_};
        while (plans_.size() > most && drop_one()) {
        }
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

class Plans {
public:
    PlanCache<ConvolutionShape, CudnnConvolutionPlan> convolutions;
    PlanCache<LinearShape, CublasLinearPlan> linears;
};

}  // namespace finch::backend::cuda
