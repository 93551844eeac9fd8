// cuBLASLt, loaded on its first call. A program linked with cuBLASLt pays for its relocations at every start, even
// without a GPU: 0.07 s of processor time and 100 MB of private memory (version 13.0).
#pragma GCC visibility push(hidden)  // so that other libraries call the real functions
#include <cublasLt.h>
#pragma GCC visibility pop

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <dlfcn.h>

namespace {

void* library() {
    static void* const loaded = [] {
        const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
        void* const handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (handle == nullptr) {
            throw finch::ApiError(fmt::format("cuBLASLt cannot be loaded: {}", ::dlerror()));
        }
        return handle;
    }();
    return loaded;
}

/// Returns cuBLASLt's own function with this name. `ours` provides the type of the function.
template <class Function>
Function* find(Function* /*ours*/, const char* name) {
    void* const found = ::dlsym(library(), name);
    if (found == nullptr) {
        throw finch::ApiError(fmt::format("cuBLASLt has no {}: {}", name, ::dlerror()));
    }
    return reinterpret_cast<Function*>(found);
}

}  // namespace

/// Defines a function of cuBLASLt that calls the library's own one.
#define FINCH_FORWARD(Result, name, parameters, arguments) \
    Result name parameters {                               \
        static auto* const function = find(name, #name);   \
        return function arguments;                         \
    }

FINCH_FORWARD(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle), (handle))
FINCH_FORWARD(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle), (handle))
FINCH_FORWARD(const char*, cublasLtGetStatusString, (cublasStatus_t status), (status))
FINCH_FORWARD(std::size_t, cublasLtGetVersion, (), ())
FINCH_FORWARD(cublasStatus_t, cublasLtMatmul,
              (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
               cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
               const void* c, cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
               const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes,
               cudaStream_t stream),
              (handle, product, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algorithm, workspace,
               workspace_bytes, stream))
FINCH_FORWARD(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
              (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
               cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
               cublasLtMatmulPreference_t preference, int asked, cublasLtMatmulHeuristicResult_t results[], int* found),
              (handle, product, a, b, c, d, preference, asked, results, found))
FINCH_FORWARD(cublasStatus_t, cublasLtMatmulDescCreate,
              (cublasLtMatmulDesc_t * product, cublasComputeType_t type, cudaDataType_t scale), (product, type, scale))
FINCH_FORWARD(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t product), (product))
FINCH_FORWARD(cublasStatus_t, cublasLtMatmulDescSetAttribute,
              (cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const void* value,
               std::size_t bytes),
              (product, attribute, value, bytes))
FINCH_FORWARD(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference), (preference))
FINCH_FORWARD(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference), (preference))
FINCH_FORWARD(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
              (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
               std::size_t bytes),
              (preference, attribute, value, bytes))
FINCH_FORWARD(cublasStatus_t, cublasLtMatrixLayoutCreate,
              (cublasLtMatrixLayout_t * layout, cudaDataType type, std::uint64_t rows, std::uint64_t columns,
               std::int64_t leading),
              (layout, type, rows, columns, leading))
FINCH_FORWARD(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout), (layout))
