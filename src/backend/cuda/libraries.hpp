#pragma once

#include "finch/backend/operation.hpp"

#include "runtime.hpp"

#include <cstdint>
#include <cublasLt.h>
#include <cudnn_graph.h>
#include <map>
#include <memory>
#include <source_location>

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

/// 91900 for 9.19.0; 0 where the library cannot be asked.
[[nodiscard]] std::int64_t cudnn_version() noexcept;
[[nodiscard]] std::int64_t cublas_version() noexcept;

struct CudnnConvolutionPlan;  ///< cudnn_plan.hpp
struct CublasLinearPlan;      ///< cublas_linear.cpp

/// What the libraries have chosen for a shape, once for all operations of the device.
class Plans {
public:
    std::map<ConvolutionShape, std::shared_ptr<CudnnConvolutionPlan>> convolutions;
    std::map<LinearShape, std::shared_ptr<CublasLinearPlan>> linears;
};

}  // namespace finch::backend::cuda
