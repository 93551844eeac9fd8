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

#define FINCH_LIBRARYS(name)                             \
    ([] {                                                \
        static auto* const function = find(name, #name); \
        return function;                                 \
    }())

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    return FINCH_LIBRARYS(cublasLtCreate)(handle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    return FINCH_LIBRARYS(cublasLtDestroy)(handle);
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
    return FINCH_LIBRARYS(cublasLtGetStatusString)(status);
}
std::size_t cublasLtGetVersion() {
    return FINCH_LIBRARYS(cublasLtGetVersion)();
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
    return FINCH_LIBRARYS(cublasLtMatmul)(handle, product, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
                                          d_layout, algorithm, workspace, workspace_bytes, stream);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
    return FINCH_LIBRARYS(cublasLtMatmulAlgoGetHeuristic)(handle, product, a, b, c, d, preference, asked, results,
                                                          found);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t type, cudaDataType_t scale) {
    return FINCH_LIBRARYS(cublasLtMatmulDescCreate)(product, type, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
    return FINCH_LIBRARYS(cublasLtMatmulDescDestroy)(product);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
    return FINCH_LIBRARYS(cublasLtMatmulDescSetAttribute)(product, attribute, value, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    return FINCH_LIBRARYS(cublasLtMatmulPreferenceCreate)(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    return FINCH_LIBRARYS(cublasLtMatmulPreferenceDestroy)(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
    return FINCH_LIBRARYS(cublasLtMatmulPreferenceSetAttribute)(preference, attribute, value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
    return FINCH_LIBRARYS(cublasLtMatrixLayoutCreate)(layout, type, rows, columns, leading);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    return FINCH_LIBRARYS(cublasLtMatrixLayoutDestroy)(layout);
}
