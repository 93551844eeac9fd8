#include "libraries.hpp"

#include "finch/base/format.hpp"

#include <new>

namespace finch::backend::cuda {

void check(cudnnStatus_t code, const char* call, std::source_location where) {
    if (code == CUDNN_STATUS_SUCCESS) {
        return;
    }
    if (code == CUDNN_STATUS_ALLOC_FAILED) {
        throw std::bad_alloc();
    }
    throw ApiError(fmt::format("{}:{}: {}: {}", where.file_name(), where.line(), call, cudnnGetErrorString(code)));
}

void check(cublasStatus_t code, const char* call, std::source_location where) {
    if (code == CUBLAS_STATUS_SUCCESS) {
        return;
    }
    if (code == CUBLAS_STATUS_ALLOC_FAILED) {
        throw std::bad_alloc();
    }
    throw ApiError(fmt::format("{}:{}: {}: {}", where.file_name(), where.line(), call, cublasLtGetStatusString(code)));
}

cudnnHandle_t Libraries::cudnn() {
    if (!cudnn_) {
        cudnnHandle_t handle = nullptr;
        FINCH_CUDNN(cudnnCreate(&handle));
        cudnn_.reset(handle);
    }
    return cudnn_.get();
}

cublasLtHandle_t Libraries::cublas() {
    if (!cublas_) {
        cublasLtHandle_t handle = nullptr;
        FINCH_CUBLAS(cublasLtCreate(&handle));
        cublas_.reset(handle);
    }
    return cublas_.get();
}

std::int64_t cudnn_version() noexcept {
    return static_cast<std::int64_t>(cudnnGetVersion());
}
std::int64_t cublas_version() noexcept {
    try {
        return static_cast<std::int64_t>(cublasLtGetVersion());
    } catch (const Error&) {
        return 0;
    }
}

}  // namespace finch::backend::cuda
